"""The processes of a running farmwatch: roles, supervision, maintenance, endpoints."""
