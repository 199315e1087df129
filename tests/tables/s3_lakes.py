"""Tables of each format in a bucket: how tests write them, and read them with the libraries themselves."""

from __future__ import annotations

from dataclasses import dataclass

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds

from tests.tables.lakes import Lake
from tests.tables.s3_server import BUCKET, KEY, SECRET, file_system


@dataclass(frozen=True)
class S3Lake(Lake):
    """A place for tables of one format in the bucket of a server. `directory` has the catalog of Iceberg."""

    address: str = ""
    bucket: str = BUCKET

    @property
    def options(self) -> dict[str, str]:
        if self.format == "parquet":
            return {
                "access_key": KEY,
                "secret_key": SECRET,
                "endpoint_override": self.address,
                "scheme": "http",
                "region": "us-east-1",
            }
        if self.format == "delta":
            return {
                "AWS_ENDPOINT_URL": f"http://{self.address}",
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
                # not ten times within three minutes
                "max_retries": "2",
            }
        return {
            **super().options,
            "warehouse": self._url,
            "s3.endpoint": f"http://{self.address}",
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        }

    def out(self, table: str = "messages") -> str:
        return super().out(table) if self.format == "iceberg" else f"{self._url}/{table}"

    def read(self, table: str = "messages") -> pa.Table:
        if self.format == "parquet":
            place = self.out(table).removeprefix("s3://")
            return ds.dataset(place, filesystem=file_system(self.address), partitioning="hive").to_table()
        if self.format == "delta":
            return deltalake.DeltaTable(self.out(table), storage_options=self.options).to_pyarrow_table()
        return super().read(table)

    @property
    def _url(self) -> str:
        # the test's own folder
        return f"s3://{self.bucket}/{self.directory.parent.name}"
