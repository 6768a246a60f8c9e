"""Pages of who must approve what."""

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from workspaces.asked_kinds import asked_kinds
from workspaces.commands.approval_rule import set_rule
from workspaces.forms.approval import RuleForm
from workspaces.models import NotFound
from workspaces.pages import PageRequest, redirect
from workspaces.queries.approval_rule import rule_of, rules
from workspaces.views.form_page import form_page


def rule_list(request: PageRequest) -> HttpResponseBase:
    kinds = asked_kinds()
    return render(request, "workspaces/approval_rules.html", {"rows": [(kinds[rule.kind], rule) for rule in rules()]})


def rule_set(request: PageRequest, kind: str) -> HttpResponseBase:
    known = asked_kinds().get(kind)
    if known is None:
        raise NotFound("rule")
    now = rule_of(kind)
    form = RuleForm(request.POST or None, initial={"approvers": now.approvers, "role": now.role, "hours": now.hours})
    above = reverse("approval-rule-list", args=[request.workspace.slug])

    def save(form: RuleForm) -> HttpResponseBase:
        set_rule(actor=request.actor, kind=kind, **form.cleaned_data)
        return redirect("approval-rule-list", request.workspace.slug)

    return form_page(
        request,
        form,
        save,
        title=f"Who must approve a {known.one}",
        submit="Set rule",
        lead=f"Now {known.without_rule}. A rule can be changed later, and not be taken away: somebody else always decides then."
        if known.without_rule and not now.is_set
        else "A stricter rule binds what waits already; a looser one only what is asked from now on.",
        trail=(("Approvals", reverse("approval-list", args=[request.workspace.slug])), ("Who must approve", above)),
        back=above,
    )
