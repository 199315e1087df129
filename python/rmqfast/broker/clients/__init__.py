"""Who is online: clients, their groups, what they subscribe to, which queues they have locked."""
