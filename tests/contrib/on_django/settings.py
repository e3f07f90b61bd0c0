"""A small Django project. Its server is that of CWIST_JQ_URL."""

import django

SECRET_KEY = "of the tests"
USE_TZ = True
INSTALLED_APPS = ["cwist_jq.contrib.django"]
if django.VERSION < (6, 0):
    INSTALLED_APPS += ["django_tasks"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
BACKEND = "cwist_jq.contrib.django.DurableBackend"
TASKS = {
    "default": {"BACKEND": BACKEND, "QUEUES": ["default", "emails"]},
}
