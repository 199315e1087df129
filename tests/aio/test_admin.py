"""Administration from asyncio, of a cluster in this process."""

from __future__ import annotations

from rmqfast import EmbeddedCluster, aio

from .loops import run


def test_groups_are_made_and_changed_by_settings_of_any_name(rmqfast_cluster: EmbeddedCluster) -> None:
    async def main() -> None:
        async with aio.Admin(name_server=rmqfast_cluster.name_server) as admin:
            await admin.create_group("readers", retry_max_times=3)
            await admin.update_group("readers", consume_enable=False)
            config = (await admin.groups())["readers"]
            assert (config.retry_max_times, config.consume_enable) == (3, False)

    run(main())
