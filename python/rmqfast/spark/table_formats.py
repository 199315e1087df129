"""Delta and Iceberg in Spark: the versions that fit each Spark, and what a session needs to load them.

Source: Maven Central; the pages "Releases" of Delta Lake and "Multi-Engine Support" of Iceberg.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rmqfast.errors import ArgumentError

TableFormat = Literal["delta", "iceberg"]


@dataclass(frozen=True)
class FormatSupport:
    """A format, and its packages.

    Attributes:
        title: Its name for people.
        extension: Its class for `spark.sql.extensions`.
        settings: Its other settings of a session.
        packages: Maven coordinates by the line of Spark.
    """

    title: str
    extension: str
    settings: dict[str, str]
    packages: dict[str, str]


FORMATS: dict[TableFormat, FormatSupport] = {
    "delta": FormatSupport(
        "Delta",
        "io.delta.sql.DeltaSparkSessionExtension",
        {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
        {
            "3.5": "io.delta:delta-spark_2.12:3.3.3",
            "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
            "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
            "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
        },
    ),
    "iceberg": FormatSupport(
        "Iceberg",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        {},
        {
            "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
            "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
            "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        },
    ),
}


def support_of(name: str) -> FormatSupport:
    """Returns a format by its name. Raises `ArgumentError` for a name that is none."""
    if name not in FORMATS:
        raise ArgumentError(f"tables: expected some of {', '.join(get_args(TableFormat))}, got {name!r}")
    return FORMATS[name]


def package_of(name: str, spark_version: str) -> str:
    """Returns the Maven coordinates of a format for a version of Spark.

    Raises:
        ArgumentError: The format has no release for this Spark.
    """
    support = support_of(name)
    line = ".".join(spark_version.split(".")[:2])
    if line not in support.packages:
        lines = list(support.packages)
        raise ArgumentError(
            f"tables: expected Spark {', '.join(lines[:-1])} or {lines[-1]}, for which {support.title} has a release, "
            f"got {spark_version}; pip install 'rmqfast[spark-{name}]' installs {lines[-1]}"
        )
    return support.packages[line]


def session_settings(names: Sequence[str], spark_version: str) -> dict[str, str]:
    """Returns the settings of a session that loads formats; lists are separated by commas."""
    if isinstance(names, str):
        raise ArgumentError(f"tables: expected a list of names, got {names!r}")
    chosen = [support_of(name) for name in names]
    settings = {
        "spark.jars.packages": ",".join(package_of(name, spark_version) for name in names),
        "spark.sql.extensions": ",".join(support.extension for support in chosen),
    }
    for support in chosen:
        settings |= support.settings
    return settings
