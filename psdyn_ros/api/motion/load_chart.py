def load_chart(manipulator):
    pass
