"""The online clients: their groups, subscriptions and queue locks."""
