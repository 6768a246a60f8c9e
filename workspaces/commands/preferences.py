"""What a person prefers: theme, density, clock, keyboard shortcuts."""

from workspaces.access import Actor
from workspaces.audit import Refusal
from workspaces.models import User
from workspaces.site_audit import SiteDraft, SiteVerb, site_command
from workspaces.text import is_name
from workspaces.windows import zone_names


@site_command(SiteVerb.PREFERENCES_SET, needs=None, public_reason="everyone settles their own preferences, and nobody else's")
def set_preferences(event: SiteDraft, *, actor: Actor, display_name: str, theme: str, density: str, zone: str, has_shortcuts: bool) -> User:
    """Settle the actor's own preferences; `zone` is an IANA name or empty for UTC."""
    if actor.user is None or actor.token_id is not None:
        raise Refusal("Preferences belong to a person who has signed in.")
    user = User.objects.select_for_update(no_key=True).get(pk=actor.user.pk)
    if theme not in User.Theme.values:
        raise Refusal(f"There is no theme {theme[:20]}; there are {', '.join(User.Theme.values)}.", field="theme")
    if density not in User.Density.values:
        raise Refusal(f"There is no density {density[:20]}; there are {', '.join(User.Density.values)}.", field="density")
    if zone and zone not in zone_names():
        raise Refusal(f"{zone[:80]} is no IANA time zone; write one such as Europe/Berlin.", field="zone")
    name = display_name.strip()
    if not 1 <= len(name) <= 120 or not is_name(name):
        raise Refusal("A name to show has 1 to 120 characters, all of which can be printed.", field="display_name")
    event.change(user, display_name=name, theme=theme, density=density, zone=zone, has_shortcuts=has_shortcuts)
    return user
