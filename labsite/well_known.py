"""What this installation publishes for anybody: the public key that its statements and checkpoints are checked with."""

from django.http import HttpRequest, HttpResponse, JsonResponse

from workspaces import dsse
from workspaces.checkpoint import public_key


def lab_keys(request: HttpRequest) -> HttpResponse:
    """A JSON Web Key Set (RFC 7517); `kid` is the `keyid` of signatures."""
    return JsonResponse({"keys": [dsse.web_key(public_key())]})
