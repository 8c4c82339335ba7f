"""Rules of what runs pods: ``apps`` and ``batch``, jobs with their schedules and policies."""
