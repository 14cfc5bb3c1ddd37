"""The auditor: checks a schedule from any simulator against its log and what its policy promises. It uses no engine."""

from walltime.auditor.audit import audit
from walltime.auditor.report import AuditReport, Violation
from walltime.auditor.rules import CHECKS

__all__ = ["CHECKS", "AuditReport", "Violation", "audit"]
