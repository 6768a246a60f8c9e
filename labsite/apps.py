from django.apps import AppConfig


class LabsiteConfig(AppConfig):
    name = "labsite"
    label = "labsite"
