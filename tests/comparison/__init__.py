"""The page that compares rmqfast with other clients and connectors: claims, their sources, and tables made of them."""
