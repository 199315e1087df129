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
    "skip": ("Skip to content", "跳到内容"),
    "retry_and_dead": ("Also retry and dead-letter topics", "包括重试和死信主题"),
}
_TIMES = frozenset({"last_stored"})
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


def cell_text(column: str, value: object, language: str) -> str:
    """Returns a value as a text of a page, without control characters."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return one_line(", ".join(map(str, value))) or "-"
    if isinstance(value, int | float):
        return _number_text(column, value)
    return one_line(word(str(value), language))


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
