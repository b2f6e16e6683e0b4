"""Messages of states that only a node can judge: what is changed in a good one, by its condition of the fault table."""


def joint_of_another_machine(msg):
    msg.name = [*msg.name, 'bucket']
    for field in ('position', 'velocity', 'effort'):
        setattr(msg, field, [*getattr(msg, field), 0.0])


def joint_twice(msg):
    msg.name = [msg.name[0], *msg.name[:-1]]


def no_velocities(msg):
    msg.velocity = []


UNUSABLE_STATES = {'state_surplus': joint_of_another_machine, 'state_duplicate': joint_twice,
                   'velocity_missing': no_velocities}
