"""The passes of policies along a schedule, in compiled code of the auditor's own. Start with events.py."""
