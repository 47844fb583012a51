"""Why a site does not answer: one short code each, which is all that leaves the site, and its meaning for people.

A reason in full, with paths and numbers, stays in the site's own log.
"""

REASONS = {
    "unapproved": "waits for approval; its engineer approves with `silograph site approve`",
    "restored": "its folder was restored from an older copy, and has forgotten answers that it gave; its engineer "
    "reads what that means and goes on with `silograph site restored`",
    "revoked": "its engineer has taken back the approval of this study during the run",
    "sites": "was asked together with other sites or silos, or with fewer or more, than the study or its limits say",
    "nodes": "its data do not have the nodes of this study",
    "samples": "its data have fewer samples than it allows to be learned from",
    "scale": "its mean squared difference is outside the range that the study gives: its units may be other ones",
    "tables": "has fewer tables than it allows to be learned from",
    "groups": "cannot compare the groups of the study: it does not say who is of which, or too few are of one; the "
    "reason is in its own log",
    "method": "does not allow this method, or not this many local steps of it",
    "rounds": "has answered as many rounds as it allows; its engineer may approve the study anew or raise the limit",
    "budget": "its people allow no more to be told: the study would exceed what all studies together may cost, or has "
    "no noise; a study with noise, or with more of it, may fit",
    "cohort": "has sent a masked sum over other sites before, and the difference of the two would show the sites that "
    "came or went; run the study with the same sites, or with noise, or its engineer approves it nonetheless",
    "parameters": "was given parameters to which the study and its set-up cannot lead; it has ended the run",
    "ended": "has ended this run, or has forgotten it after many later ones; the run must be started anew",
    "conflict": "got a second, different request for a round that it had answered; the run must be started anew",
    "out-of-turn": "was asked a round that is not due; the run cannot go on and must be started anew",
    "data-changed": "its data have changed since the run began; bring the old file back there, or start a new run",
    "data": "its data cannot be read, or do not fit the study (cost_unit, pull); the reason is in its own log",
    "keys": "its keys of this run are gone, as its process was started anew; the run begins anew by itself",
    "pins": "a site of the study is not pinned there, or another key of it is; its engineer compares fingerprints and "
    "pins with `silograph site pin`",
    "unknown-run": "does not know the run",
    "busy": "is still at work",
    "kept": "keeps its graph to itself",
    "malformed": "could not read the message",
    "not-coordinator": "was asked by someone who is not the coordinator",
    "internal": "failed; the reason is in its own log",
}
PASSING = frozenset({"unapproved", "busy", "unknown-run"})  # a later try may be answered


class Refused(Exception):  # noqa: N818 - no error, but an answer
    """A refusal by one of the site's checks: the code is for the coordinator, the detail for the site's own log."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(detail or REASONS[code])
        self.code, self.detail = code, detail
