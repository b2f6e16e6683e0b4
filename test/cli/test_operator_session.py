"""An operator and services of a controller that loses answers, or refuses for a while."""

import re
import time

import pytest

pytest.importorskip('rclpy', reason='the operator is a node')

from lifecycle_msgs.srv import GetState  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402

from psdyn_ros.tools.demo.session import own_node  # noqa: E402
from psdyn_ros.tools.operator import session  # noqa: E402
from psdyn_ros.tools.operator.session import OperatorError, RefusedError, operator  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

SPACE = '/answers'


@pytest.fixture
def controller():
    """Yield (node, asked, operator): a node with two services of a controller, what it was asked, who asks.

    The services lose the first answers, or refuse at first, as many as `node.lost` and `node.refused` say, and are not
    served until `node.busy_until`.
    """
    asked = []

    def state(request, response):
        asked.append('get_state')
        response.current_state.label = 'active'
        return response

    def enable(request, response):
        asked.append(f'enable {request.data}')
        response.success = len(asked) > node.refused
        response.message = 'enabled' if response.success else 'it moves'
        return response

    with own_node(name='controller', namespace=SPACE) as (node, serve), \
            operator(SPACE, timeout=60.0) as one:
        node.lost, node.refused, node.busy_until = 0, 0, 0.0
        services = [node.create_service(GetState, f'{SPACE}/controller/get_state', state),
                    node.create_service(SetBool, f'{SPACE}/controller/enable', enable)]
        for service in services:
            def send(response, header, send=service.send_response):
                if len(asked) > node.lost:
                    send(response, header)
            service.send_response = send
        spin_once = one._spin_once

        def both(timeout_sec):
            if time.monotonic() >= node.busy_until:
                serve(timeout_sec=0.0)
            spin_once(timeout_sec=min(timeout_sec, 0.005))

        one._spin_once = both
        assert one.lifecycle() == 'active'      # they have found each other
        asked.clear()
        yield node, asked, one


def test_a_harmless_request_whose_answer_is_lost_is_made_again_and_says_so(controller, monkeypatch, capfd):
    node, asked, one = controller
    monkeypatch.setattr(session, 'ANSWER', 0.5)
    node.lost = 1
    assert one.lifecycle() == 'active' and len(asked) >= 2
    assert f'{SPACE}/controller/get_state: an answer was lost' in ''.join(capfd.readouterr())
    asked.clear()
    assert one.disable() == 'enabled' and asked[:2] == ['enable False'] * 2


def test_of_a_node_that_answers_late_no_answer_was_lost(controller, monkeypatch, capfd):
    node, asked, one = controller
    monkeypatch.setattr(session, 'ANSWER', 0.5)
    node.busy_until = time.monotonic() + 2.0
    assert one.lifecycle() == 'active' and one.until(lambda: len(asked) > 1, 10.0)
    assert 'an answer was lost' not in ''.join(capfd.readouterr())


def test_enabling_is_asked_for_once_and_a_lost_answer_is_an_error(controller, monkeypatch):
    node, asked, one = controller
    monkeypatch.setattr(session, 'ANSWER', 0.2)
    node.lost, one.timeout = 1, 1.0
    with pytest.raises(OperatorError, match=re.escape(f'{SPACE}/controller/enable did not answer within 1 s; the '
                                                      'controller reports: nothing')):
        one.enable()
    assert asked == ['enable True']


def test_a_machine_that_moves_is_enabled_when_it_rests_where_one_waits(controller):
    node, asked, one = controller
    node.refused = 3
    with pytest.raises(RefusedError, match='it moves'):
        one.enable()
    assert asked == ['enable True'] and one.enable(60.0) == 'enabled' and len(asked) == 4
    node.refused, began = 1000, time.monotonic()
    with pytest.raises(RefusedError, match='it moves'):
        one.enable(1.0)
    assert time.monotonic() - began >= 1.0
