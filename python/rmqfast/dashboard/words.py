"""The dashboard's words in English and Chinese, and values as texts."""

from __future__ import annotations

from rmqfast.cells import duration_text, one_line, size_text, time_text

LANGUAGES = {"en": "English", "zh": "中文"}
#: English and Chinese, by key.
_WORDS: dict[str, tuple[str, str]] = {
    "overview": ("Overview", "概览"),
    "groups": ("Groups", "消费组"),
    "group": ("Group", "消费组"),
    "topics": ("Topics", "主题"),
    "topic": ("Topic", "主题"),
    "brokers": ("Brokers", "Broker"),
    "broker": ("Broker", "Broker"),
    "alarms": ("Alarms", "告警"),
    "doctor": ("Doctor", "诊断"),
    "queues": ("Queues", "队列"),
    "queue": ("Queue", "队列"),
    "subscriptions": ("Subscriptions", "订阅"),
    "subscription": ("Subscription", "订阅"),
    "longest_backlogs": ("Longest backlogs", "最长积压"),
    "state": ("State", "状态"),
    "members": ("Members", "成员"),
    "member": ("Member", "成员"),
    "online_members": ("Members online", "在线成员"),
    "consume_type": ("Type", "类型"),
    "message_model": ("Model", "模式"),
    "consume_tps": ("Consumed/s", "消费/秒"),
    "behind": ("Behind", "积压"),
    "lag_seconds": ("Time lag", "时间延迟"),
    "retention_seconds": ("Deleted in", "多久后删除"),
    "read_queues": ("Read queues", "读队列"),
    "write_queues": ("Write queues", "写队列"),
    "perm": ("Rights", "权限"),
    "messages": ("Messages", "消息"),
    "stored_messages": ("Stored", "已存储"),
    "first_offset": ("First", "起始位点"),
    "end_offset": ("End", "末尾位点"),
    "offset": ("At", "消费位点"),
    "last_stored": ("Last stored", "最后存储"),
    "owner": ("Owner", "所属成员"),
    "role": ("Role", "角色"),
    "cluster": ("Cluster", "集群"),
    "address": ("Address", "地址"),
    "version": ("Version", "版本"),
    "in_tps": ("In/s", "写入/秒"),
    "out_tps": ("Out/s", "读出/秒"),
    "disk_used": ("Disk", "磁盘"),
    "log_end": ("Log end", "日志末尾"),
    "behind_bytes": ("Behind", "落后"),
    "findings": ("Findings", "发现"),
    "conflict": ("conflict", "冲突"),
    "offline": ("offline", "离线"),
    "fine": ("fine", "正常"),
    "idle": ("idle", "空闲"),
    "differs": ("differs", "不一致"),
    "kept by brokers": ("kept by brokers", "Broker 保留"),
    "loses messages": ("loses messages", "丢失消息"),
    "problem": ("Problem", "问题"),
    "advice": ("Advice", "建议"),
    "unknown": ("Unknown", "未知"),
    "not_told": ("Not told", "未获得"),
    "explain": ("State", "状态"),
    "next": ("Next", "下一步"),
    "search": ("Search", "搜索"),
    "password": ("Password", "密码"),
    "log_in": ("Log in", "登录"),
    "log_out": ("Log out", "退出"),
    "wrong_password": ("Wrong password.", "密码错误。"),
    "too_many_attempts": ("Too many attempts: wait a moment.", "尝试过多：请稍候。"),
    "form_expired": ("The form has expired: try again.", "表单已过期：请重试。"),
    "error": ("Error", "错误"),
    "seconds_ago": ("seconds ago", "秒前"),
    "nothing_wrong": ("Nothing wrong was seen.", "未发现问题。"),
    "no_rows": ("No rows.", "没有数据。"),
    "rows": ("rows", "行"),
    "more": ("more", "更多"),
    "previous": ("Previous", "上一页"),
    "next_page": ("Next page", "下一页"),
    "skip_to_content": ("Skip to content", "跳到内容"),
    "message": ("Message", "消息"),
    "dead_letters": ("Dead letters", "死信"),
    "producers": ("Producers", "生产者"),
    "producer_group": ("Group", "生产组"),
    "client": ("Client", "客户端"),
    "language": ("Language", "语言"),
    "access": ("Access", "权限管理"),
    "accounts": ("Accounts", "账号"),
    "account": ("Account", "账号"),
    "is_admin": ("Administrator", "管理员"),
    "white_address": ("Without signature from", "免签名地址"),
    "default_topic_perm": ("Other topics", "默认主题权限"),
    "default_group_perm": ("Other groups", "默认消费组权限"),
    "topic_perms": ("Rights on topics", "主题权限"),
    "group_perms": ("Rights of groups", "消费组权限"),
    "changes": ("Changes", "变更"),
    "change": ("Change", "变更"),
    "visitor": ("From", "来自"),
    "values": ("Values", "参数"),
    "reset": ("Reset offsets", "重置位点"),
    "skip": ("Skip the backlog", "跳过积压"),
    "clone": ("Copy offsets", "复制位点"),
    "create-topic": ("Create or change a topic", "创建或修改主题"),
    "delete-topic": ("Delete a topic", "删除主题"),
    "create-group": ("Create or change a group", "创建或修改消费组"),
    "delete-group": ("Delete a group", "删除消费组"),
    "resend": ("Resend dead letters", "重发死信"),
    "resend_selected": ("Resend the selected ones", "重发所选"),
    "resend_all": ("Resend all of this search", "重发全部结果"),
    "resent_to": ("Resent to", "重发到"),
    "select": ("Select", "选择"),
    "preview": ("Show what it would do", "预览"),
    "do_it": ("Do it", "执行"),
    "would": ("Nothing was changed yet", "尚未变更"),
    "done": ("Done", "已完成"),
    "failed": ("failed", "失败"),
    "type_the_name": ("To go on, type the name", "请输入名称以继续"),
    "read_only": ("read-only", "只读"),
    "target": ("To group", "目标消费组"),
    "to": ("To (UTC)", "到（UTC）"),
    "before": ("Before", "之前"),
    "after": ("After", "之后"),
    "again": ("Come again", "重新消费"),
    "skipped": ("Are left out", "被跳过"),
    "settings": ("Settings", "设置"),
    "setting": ("Setting", "设置"),
    "name": ("Name", "名称"),
    "value": ("Value", "值"),
    "retry_max_times": ("Retries", "最大重试次数"),
    "retry_queue_nums": ("Retry queues", "重试队列数"),
    "expression": ("Tags or SQL92", "标签或 SQL92"),
    "kind": ("Kind", "类型"),
    "text": ("Text", "内容"),
    "from": ("From (UTC)", "起始时间（UTC）"),
    "key": ("Key", "Key"),
    "id": ("Id", "ID"),
    "place": ("Place: BROKER:QUEUE:OFFSET", "位置：BROKER:QUEUE:OFFSET"),
    "all": ("All", "全部"),
    "time_hint": ("2026-01-31T12:00", "2026-01-31T12:00"),
    "store_timestamp": ("Stored", "存储时间"),
    "born_timestamp": ("Sent", "发送时间"),
    "event_timestamp": ("Time", "时间"),
    "born_host": ("Sent by", "发送方"),
    "origin": ("Topic", "原主题"),
    "tags": ("Tag", "标签"),
    "queue_offset": ("Offset", "位点"),
    "keys": ("Keys", "Key"),
    "size": ("Bytes", "字节"),
    "body": ("Body", "消息体"),
    "attempts": ("Failed attempts", "失败次数"),
    "offset_msg_id": ("Broker's id", "Broker 消息 ID"),
    "timeline": ("What happened", "消息轨迹"),
    "properties": ("Properties", "属性"),
    "older": ("Older", "更早"),
    "newer": ("Newer", "更新"),
    "previous_message": ("Previous message of the queue", "队列中上一条"),
    "next_message": ("Next message of the queue", "队列中下一条"),
    "decode": ("Format", "格式"),
    "schema": ("Schema: DDL or Avro", "模式：DDL 或 Avro"),
    "decode_body": ("Decode the body", "解码消息体"),
    "decoded": ("Decoded body", "解码后的消息体"),
    "not_decoded": ("The body was not decoded", "消息体未解码"),
    "whole_body": ("Whole body", "完整消息体"),
    "json": ("JSON", "JSON"),
    "hex": ("Hex", "十六进制"),
    "search_is_long": ("The search is not at its end", "搜索未完成"),
    "rates": ("Messages a second", "每秒消息数"),
    "backlog": ("Backlog", "积压"),
    "keys_title": ("Keys", "快捷键"),
    "key_rows": ("Next and previous row", "下一行和上一行"),
    "key_pages": ("Next and previous page", "下一页和上一页"),
    "close": ("Close", "关闭"),
    "retry_and_dead": ("Also retry and dead-letter topics", "包括重试和死信主题"),
}
_TIMES = frozenset({"last_stored", "store_timestamp", "born_timestamp", "event_timestamp"})
#: Columns whose values are words of ours.
_TRANSLATED = frozenset({"state", "change", "setting", "title"})
_DURATIONS = frozenset({"lag_seconds", "retention_seconds"})
_BYTES = frozenset({"behind_bytes"})
_RATIOS = frozenset({"disk_used"})


def word(key: str, language: str) -> str:
    """Returns a word in a language; what has no translation stays as it is."""
    words = _WORDS.get(key)
    return key if words is None else words[list(LANGUAGES).index(language)]


def language_of(wanted: str | None, accepted: str) -> str:
    """Returns the language of a page: the wanted one, or the browser's."""
    if wanted in LANGUAGES:
        return str(wanted)
    first = accepted.split(",", maxsplit=1)[0].strip().lower()
    return "zh" if first.startswith("zh") else "en"


def is_time(column: str) -> bool:
    """Whether a column has times."""
    return column in _TIMES


def is_number(column: str, value: object) -> bool:
    """Whether a value is shown as a number, at the right."""
    return isinstance(value, int | float) and not isinstance(value, bool) and column not in _TIMES


def cell_text(column: str, value: object, language: str) -> str:
    """Returns a value as a text of a page, without control characters."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return one_line(", ".join(map(str, value))) or "-"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_text(column, value)
    # Only words of ours have a translation, and no name or text of a user.
    return one_line(word(str(value), language) if column in _TRANSLATED else str(value))


def _number_text(column: str, value: float) -> str:
    if column in _TIMES:
        return time_text(int(value))
    if column in _DURATIONS:
        return duration_text(value * 1000)
    if column in _BYTES:
        return size_text(value)
    if column in _RATIOS:
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
