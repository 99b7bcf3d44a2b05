"""What a topic is for, by its name.

Source: RocketMQ 4.9.3 and 5.5.0 `TopicValidator`, `MixAll`.
"""

from __future__ import annotations

from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC

_SYSTEM = {
    "BenchmarkTest",
    "OFFSET_MOVED_EVENT",
    "RMQ_SYS_TRACE_TOPIC",
    "SELF_TEST_TOPIC",
    "TBW102",
    "TRANS_CHECK_MAX_TIME_TOPIC",
}
_DELAYED = {SCHEDULE_TOPIC, "rmq_sys_wheel_timer"}
_PREFIXES = (
    ("%DLQ%", "dead letters"),
    ("%RETRY%", "retries"),
    ("%LMQ%", "light queues"),
    ("RMQ_SYS_", "system"),
    ("rmq_sys_", "system"),
)


def topic_kind(topic: str) -> str:
    """ "messages" for the topics of users; "delayed", "dead letters", "retries", "light queues" and "system".

    >>> topic_kind("orders"), topic_kind("%RETRY%billing")
    ('messages', 'retries')
    """
    if topic in _DELAYED:
        return "delayed"
    if topic in _SYSTEM:
        return "system"
    return next((kind for prefix, kind in _PREFIXES if topic.startswith(prefix)), "messages")
