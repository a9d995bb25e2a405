"""What can be wrong with certificates."""

from __future__ import annotations

from angarium.errors import Fault, InvalidArgument, WireError


class UnusableCertificate(InvalidArgument):
    """A file of certificates or keys cannot be used; the message says which, and why."""

    code = "UNUSABLE_CERTIFICATE"


class UntrustedNode(WireError):
    """Who answers, or greets as a node, has not shown a node certificate of this cluster."""

    code = "UNTRUSTED_NODE"
    fault = Fault.CALLER
