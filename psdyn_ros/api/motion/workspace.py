def workspace(manipulator):
    pass
