"""Registration at name servers."""
