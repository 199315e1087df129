"""A slow, plain-Python reader and writer of a RocketMQ store: the oracle that the fast one is held to.

It shares no code with the package, reads whole files into memory, and says each rule of the format once:

- `record`, `properties`, `host`, `message_id`, `compression`: one record of the commit log;
- `consume_queue`, `index_file`, `checkpoint`, `config_json`: the other files;
- `commit_log`, `store`, `row`, `get_message`, `search_offset`: reading a store directory;
- `writer`, `random_store`: writing one, and strategies that think up hostile ones.
"""
