"""Delayed messages: stores them until they are due."""
