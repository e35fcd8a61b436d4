"""Which web requests are let in, by their headers."""

import socket

import pytest

from urlab.access.web import WebAccess, check_token, new_token
from urlab.errors import ConfigError

LOCAL = WebAccess("127.0.0.1")


def refused(access: WebAccess, method: str = "POST", **headers: str) -> str | None:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return access.refused_page(method, pairs)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8087",
        "127.8.8.8:1",
        "localhost",
        "LOCALHOST:8087",
        "a.localhost:1",
        "[::1]:8087",
        "[::1]",
    ],
)
def test_a_server_on_loopback_is_asked_for_by_the_names_of_loopback(host: str) -> None:
    assert refused(LOCAL, host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8087", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.7", "0.0.0.0",
        "[fe80::1]:8087", "", ":8087", "notlocalhost", "127.0.0.1@evil.example", "127.0.0.1 evil.example",
    ],
)  # fmt: skip
def test_any_other_host_is_refused_and_named(host: str) -> None:
    words = refused(LOCAL, host=host)
    assert words is not None
    assert repr(host) in words
    assert "--allow-host" in words


def test_every_host_of_a_request_with_two_must_be_ours() -> None:
    assert LOCAL.refused_page("GET", [(b"host", b"evil.example"), (b"host", b"localhost")]) is not None


def test_a_program_that_names_no_host_is_let_in() -> None:
    assert LOCAL.refused_page("GET", []) is None


def test_names_that_the_user_allows_are_ours() -> None:
    access = WebAccess("127.0.0.1", allowed_hosts=("Lab.example",))
    assert refused(access, host="lab.example:8087") is None
    assert refused(access, host="lab.example.") is None
    assert refused(access, host="other.example") is not None


def test_a_server_that_others_reach_answers_to_its_addresses_and_the_name_of_the_machine() -> None:
    everywhere = WebAccess("0.0.0.0")
    assert refused(everywhere, host="192.168.1.7:8087") is None
    assert refused(everywhere, host=socket.gethostname()) is None
    assert refused(everywhere, host="evil.example") is not None
    one_address = WebAccess("192.168.1.7")
    assert refused(one_address, host="192.168.1.7:8087") is None
    assert refused(one_address, host="192.168.1.8:8087") is not None


def test_with_a_token_the_host_may_be_any() -> None:
    assert refused(WebAccess("0.0.0.0", new_token()), host="behind-a-proxy.example") is None


@pytest.mark.parametrize(
    ("headers", "let_in"),
    [
        ({}, True),
        ({"origin": "http://127.0.0.1:8087"}, True),
        ({"origin": "http://127.0.0.1:8088"}, False),
        ({"origin": "http://localhost:8087"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"sec_fetch_site": "same-origin"}, True),
        ({"sec_fetch_site": "none"}, True),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site"}, False),
        ({"sec_fetch_site": "cross-site", "origin": "http://127.0.0.1:8087"}, False),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, False),
    ],
)
@pytest.mark.parametrize("token", [None, "a token of many letters"])
def test_a_page_of_another_origin_is_refused_with_a_token_too(
    headers: dict[str, str], let_in: bool, token: str | None
) -> None:
    assert (refused(WebAccess("127.0.0.1", token), host="127.0.0.1:8087", **headers) is None) is let_in


def test_a_link_on_another_page_may_lead_here_but_a_frame_in_it_may_not() -> None:
    link = {"host": "localhost", "sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert refused(LOCAL, "GET", **link, sec_fetch_dest="document") is None
    assert refused(LOCAL, "GET", **link, sec_fetch_dest="iframe") is not None


def test_only_the_token_itself_is_right() -> None:
    token = new_token()
    access = WebAccess("127.0.0.1", token)
    assert access.is_token_right(f"Bearer {token}".encode())
    for wrong in ("", token, f"bearer {token}", f"Bearer {token} ", f"Bearer {token[:-1]}", f"Basic {token}"):
        assert not access.is_token_right(wrong.encode())
    assert LOCAL.is_token_right(b"")


def test_a_token_that_could_be_guessed_is_refused_with_a_hint() -> None:
    check_token(None)
    check_token(new_token())
    for short in ("", "x", "fifteen letters"):
        with pytest.raises(ConfigError, match=r"needs 16 or more\. '--token auto' makes one"):
            check_token(short)
    assert len({new_token() for _ in range(100)}) == 100
