"""Clients that are online: their groups, subscriptions and queue locks."""
