"""The options that say which cluster, and how it is reached: the same for what is read from it and what is sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from rmqfast.client.instance import ClientConfig
from rmqfast.errors import ArgumentError
from rmqfast.remoting import TlsOptions

__all__ = ["ClusterOptions"]


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """How driver and executors reach a cluster.

    Attributes:
        name_server: `host:port`, several separated by `;`, as driver and executors reach it.
        access_key: The account, where brokers ask for one.
        secret_key: Proves who that is.
        security_token: Goes along with it.
        tls: Whether connections have TLS; any of the files below says so, too: nobody who names one means connections
            that everybody can read.
        tls_trust: A PEM file of the authorities whose certificates are taken, at that path on every executor.
        tls_certificate: Who this client is, where brokers ask.
        tls_key: The key of that certificate.
        tls_verify: Whether brokers have to prove who they are.
        tls_check_host: Whether a certificate has to be for the broker's host.
    """

    name_server: str
    access_key: str | None = None
    # not shown: Spark logs plans, and an error may show the options
    secret_key: str | None = field(default=None, repr=False)
    security_token: str | None = field(default=None, repr=False)
    tls: bool | None = None
    tls_trust: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_verify: bool = True
    tls_check_host: bool = True

    def client_config(self, namespace: str = "") -> ClientConfig:
        """What a client is given.

        Args:
            namespace: Stands before topic and group.

        Raises:
            ArgumentError: An address without a port, half of an account, or nobody to trust.
        """
        return ClientConfig(
            name_server=self.name_server,
            namespace=namespace,
            access_key=self.access_key,
            secret_key=self.secret_key,
            security_token=self.security_token,
            tls=self._tls_options(),
        )

    def _tls_options(self) -> TlsOptions | None:
        files = (self.tls_trust, self.tls_certificate, self.tls_key)
        # an explicit false wins over files that are named
        if self.tls is False or (self.tls is None and files == (None, None, None)):
            return None
        try:
            options = TlsOptions(
                trust=self.tls_trust,
                certificate=self.tls_certificate,
                key=self.tls_key,
                verify=self.tls_verify,
                check_host=self.tls_check_host,
            )
            # now, in the driver: without authorities every task would fail
            options.check_trust()
        except ArgumentError as error:
            raise ArgumentError(f"option tls (with tlsTrust, tlsCertificate, tlsKey, tlsVerify): {error}") from error
        return options
