"""What the guard lets pass, by what a message says and whose connection it came by."""

import pytest

pytest.importorskip("nvflare")

from silograph.federation.nvflare.guard import Peer, complaint_of, relayed_complaint

JOB = "4fb6b2ef-f87e-4b3c-b59c-f8075e580731"
SITE, LEAD = Peer("lima", "site"), Peer(f"_admin_{JOB}", "lead")
OWN_JOB = Peer(f"server.{JOB}", "child")


def message(channel: str, topic: str, to: str, origin: str = "lima", **more: object) -> dict[str, object]:
    """Headers of a request; those of `more` may be the stream's (`ch`, `tp`)."""
    named = {"channel": channel, "topic": topic, "destination": to, "origin": origin, "from": origin, "msg_type": "req"}
    stream = {f"sm__{key}": more.pop(key) for key in ("ch", "tp") if key in more}
    return {**{f"cn__{key}": value for key, value in {**named, **more}.items()}, **stream}


HEARTBEAT = message("task", "heart_beat", "server")
ANSWER = message("sm__STREAM", "sm__DATA", f"server.{JOB}", f"lima.{JOB}", ch="return_only", tp="aux:silograph.request")
LOGIN = message("sm__STREAM", "sm__DATA", "server", LEAD.name, ch="hci_channel", tp="command")


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        (SITE, HEARTBEAT),
        (SITE, ANSWER),
        (SITE, {**ANSWER, "cn__from": "lima"}),  # through its parent process
        (SITE, message("server_command", "get_task", f"server.{JOB}", f"lima.{JOB}")),
        (SITE, message("admin", "train.deploy", "server", msg_type="reply")),
        (LEAD, LOGIN),
        (OWN_JOB, message("server_parent_listener", "get_clients", "server", OWN_JOB.name)),
        (OWN_JOB, message("admin", "train.check_status", "lima", OWN_JOB.name)),
    ],
)
def test_what_a_run_needs_passes(peer, headers):
    assert complaint_of(peer, headers) is None


@pytest.mark.parametrize(
    ("peer", "headers", "complaint"),
    [
        (SITE, {**HEARTBEAT, "cn__origin": "server"}, "comes from 'server'"),
        (SITE, {**HEARTBEAT, "cn__origin": "oslo"}, "comes from 'oslo'"),
        (SITE, {**HEARTBEAT, "cn__origin": "lima-2"}, "comes from 'lima-2'"),
        (SITE, {**HEARTBEAT, "cn__origin": ["lima"]}, "comes from"),
        (SITE, {**HEARTBEAT, "cn__from": f"server.{JOB}"}, "comes from 'server."),
        (SITE, {}, "comes from 'None'"),
        (SITE, {**HEARTBEAT, "client_name": "oslo"}, "bears the token of 'oslo'"),
        (SITE, {**HEARTBEAT, "client_name": "server"}, "bears the token of 'server'"),
        (SITE, {**HEARTBEAT, "cn__destination": "oslo", "cn__msg_type": "reply"}, "is for 'oslo'"),
        (SITE, {**HEARTBEAT, "cn__destination": LEAD.name}, "is for '_admin_"),
        (
            SITE,
            {**HEARTBEAT, "cn__msg_type": "return", "cn__original_headers": {"cn__destination": "oslo"}},
            "to 'oslo'",
        ),
        (SITE, message("server_parent_listener", "heartbeat", "server"), "asks for 'heartbeat'"),
        (SITE, LOGIN | {"cn__origin": "lima", "cn__from": "lima"}, "asks for 'command' on 'hci_channel'"),
        (SITE, message("cellnet.channel", "bulk", f"server.{JOB}"), "asks for 'bulk'"),
        (SITE, {**ANSWER, "sm__ch": "server_command", "sm__tp": "abort"}, "asks for 'abort'"),
        (SITE, {**ANSWER, "sm__ch": "server_command", "sm__tp": "submit_update"}, "asks for 'submit_update'"),
        (SITE, {**ANSWER, "sm__ch": "aux_communication", "sm__tp": "fed.event"}, "asks for 'fed.event'"),
        (LEAD, {**LOGIN, "cn__destination": f"server.{JOB}"}, "is for 'server."),
        (LEAD, {**LOGIN, "cn__origin": "server"}, "comes from 'server'"),
        (OWN_JOB, message("admin", "train.abort", "lima", "server"), "comes from 'server'"),
    ],
)
def test_what_nobody_needs_is_dropped_and_the_reason_told(peer, headers, complaint):
    assert complaint in (complaint_of(peer, headers) or "")


def test_a_site_hears_the_server_and_itself_and_a_job_of_the_servers_also_sites_that_keep_to_the_list():
    abort = message("server_command", "abort", f"server.{JOB}")
    assert relayed_complaint("server", "lima", abort) is None
    assert relayed_complaint("lima", "lima", abort) is None
    assert relayed_complaint("oslo", "lima", HEARTBEAT) == "is of another site"
    assert relayed_complaint("server", "server", abort) is None
    assert relayed_complaint("lima", "server", ANSWER) is None
    assert "asks for 'abort'" in (relayed_complaint("lima", "server", abort) or "")
