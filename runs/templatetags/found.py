"""`{% load found %}`: what a search found, with the place that matches set off."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

register = template.Library()

SHOWN = 160  # characters before the match, and after it


@register.simple_tag
def marked(parts: tuple[str, str, str]) -> SafeString | str:
    """`{% marked row.name %}` with (before, match, after); every part is escaped."""
    before, match, after = parts
    if not match:
        return Truncator(before).chars(SHOWN)
    if len(before) > SHOWN:
        before = f"…{before[-SHOWN:]}"
    return format_html("{}<mark>{}</mark>{}", before, match, Truncator(after).chars(SHOWN))
