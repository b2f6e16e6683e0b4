"""The server of `psdyn view`: one page, events, the loopback, another port where one is busy."""

import json
import socket
import urllib.error
import urllib.request

import pytest

from psdyn_ros.view.server import Server, ServerError


def test_server_gives_its_page_on_the_loopback_only():
    with Server('<p>crane é</p>', port=0) as server:
        assert server.url.startswith('http://127.0.0.1:') and not server.busy
        with urllib.request.urlopen(server.url) as answer:
            assert answer.read().decode() == '<p>crane é</p>'
        with pytest.raises(urllib.error.HTTPError, match='404'):
            urllib.request.urlopen(server.url + '../etc/passwd')


def test_busy_port_is_passed_over_and_said():
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Server('page', port=port) as server:
            assert server.busy and f':{port}/' not in server.url
            assert urllib.request.urlopen(server.url).read() == b'page'


def test_address_of_nobody_is_an_error_that_names_it():
    with pytest.raises(ServerError, match=r"cannot listen on '192\.0\.2\.1', port 8008"):
        Server('page', host='192.0.2.1')


def test_events_reach_a_page_that_is_open_and_one_that_opens_later():
    with Server('page', port=0) as server:
        server.publish({'q': [1.0]})
        with urllib.request.urlopen(server.url + 'events', timeout=30.0) as stream:
            assert next_event(stream) == {'q': [1.0]}
            server.publish({'q': [2.0]})
            assert next_event(stream) == {'q': [2.0]}


def next_event(stream):
    while True:
        line = stream.readline().decode()
        if line.startswith('data: '):
            return json.loads(line[6:])
