"""Registration of brokers at name servers."""
