"""The auditor: checks a schedule from any simulator against its log and the guarantees of its policy, without any compiled engine."""

from walltime.auditor.audit import audit
from walltime.auditor.report import CHECKS, AuditReport, Violation

__all__ = ["CHECKS", "AuditReport", "Violation", "audit"]
