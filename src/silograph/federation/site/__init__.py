"""A site: its settings and limits, its approvals, its audit log, and its service, which answers the coordinator."""
