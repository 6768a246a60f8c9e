"""Every address of labsite."""

from django.urls import include, path

from labsite import accounts, health, well_known
from labsite.api import guarded_urls
from workspaces.pages import site_page

urlpatterns = [
    site_page("livez", health.livez, name="livez", needs=None, public_reason="a load balancer asks without signing in"),
    site_page("readyz", health.readyz, name="readyz", needs=None, public_reason="a load balancer asks without signing in"),
    site_page(
        ".well-known/lab-keys.json",
        well_known.lab_keys,
        name="lab-keys",
        needs=None,
        public_reason="whoever holds a statement checks it without signing in",
    ),
    path("accounts/", include(accounts.urlpatterns())),
    path("api/v1/", guarded_urls()),
    path("", include("labsite.console")),
    path("", include("workspaces.urls")),  # first: `/workspaces/new/` is no workspace named new
    path("", include("runs.urls")),
]

# Django's names for what answers where no view does.
handler400 = "labsite.errors.bad_request"
handler403 = "labsite.errors.permission_denied"
handler404 = "labsite.errors.not_found"
handler500 = "labsite.errors.server_error"
