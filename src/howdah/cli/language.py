"""What the command line says, in English or Chinese. English is the key; tests/unit/test_language.py finds what lacks.

HOWDAH_LANGUAGE (en, zh, auto) decides, else LC_ALL, LC_MESSAGES, LANG. Errors keep English: people search for them.
"""

from __future__ import annotations

import os

_ZH = {
    "Commands": "命令",
    "Run a job and follow it; exits with its result.": "运行作业并跟踪其进展；以作业的结果作为退出码。",
    "Submit a job and print its id.": "提交作业并打印其编号。",
    "Show what submit would do, and change nothing.": "显示提交将执行的操作，不作任何更改。",
    "List your jobs.": "列出你的作业。",
    "Show a job and its tasks.": "显示作业及其任务。",
    "Print the logs of a job or a task.": "打印作业或任务的日志。",
    "End a job.": "结束作业。",
    "A real Hadoop on this machine's loopback.": "在本机回环地址上运行真实的 Hadoop。",
    "Show and change settings.": "查看和修改设置。",
    "Print the JSON Schema of job files.": "打印作业文件的 JSON Schema。",
    "XLearning's submit command.": "XLearning 的提交命令。",
    "Distributed training on this machine and on Hadoop YARN: one job file, one command.": (
        "在本机和 Hadoop YARN 上进行分布式训练：一个作业文件，一条命令。"
    ),
    "No command {name}.": "没有命令 {name}。",
    "Did you mean {nearest}?": "是否想输入 {nearest}？",
    "submitted {id} to {engine}": "已提交 {id} 到 {engine}",
    "page: {url}": "页面：{url}",
    "{task} joined on {host}": "{task} 已在 {host} 就绪",
    "{task} runs on {host} (pid {pid})": "{task} 正在 {host} 上运行（pid {pid}）",
    "{task} on {node}: {exit}": "{task}（{node}）：{exit}",
    "all {count} tasks have joined; the programs start": "全部 {count} 个任务已就绪；程序启动",
    "waiting for {count} containers of {role}": "等待 {role} 的 {count} 个容器",
    "{task} has a container on {node}": "{task} 已获得 {node} 上的容器",
    "output: {uri}": "输出：{uri}",
    "stopping: {reason}": "正在停止：{reason}",
    "{id} {state}": "{id} {state}",
    "the job goes on; `howdah status {id}` and `howdah cancel {id}` reach it": (
        "作业继续运行；可用 `howdah status {id}` 和 `howdah cancel {id}` 访问"
    ),
    "cancelling {id}": "正在取消 {id}",
    "{id} had ended already: {state}": "{id} 早已结束：{state}",
    "Cancel the job, detach from it, or go on following?": "取消作业、脱离，还是继续跟踪？",
    "no jobs": "没有作业",
    "Id": "编号",
    "Name": "名称",
    "State": "状态",
    "Engine": "引擎",
    "User": "用户",
    "Queue": "队列",
    "Started": "开始",
    "Took": "用时",
    "Task": "任务",
    "Host": "主机",
    "Progress": "进度",
    "Memory": "内存",
    "Peak": "峰值",
    "CPU": "CPU",
    "Attempt": "次数",
    "Exit": "退出",
    "last lines of {task}:": "{task} 的最后几行：",
    "uploading {what}": "正在上传 {what}",
    "sandbox is up: Hadoop {version}, {nodes} nodes; HADOOP_CONF_DIR={conf}": (
        "沙箱已启动：Hadoop {version}，{nodes} 个节点；HADOOP_CONF_DIR={conf}"
    ),
    "sandbox is down": "沙箱已关闭",
    "no sandbox is up": "没有正在运行的沙箱",
}
_language = "en"


def choose(wanted: str = "") -> str:
    """Set the language from `wanted` or the environment; the one chosen."""
    global _language
    wanted = wanted or os.environ.get("HOWDAH_LANGUAGE", "auto")
    if wanted == "auto":
        names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
        wanted = next((name for name in names if name), "en")
    _language = "zh" if wanted.lower().startswith("zh") else "en"
    return _language


def say(text: str, **values: object) -> str:
    """`text` in the chosen language, with `{name}` filled in."""
    chosen = _ZH.get(text, text) if _language == "zh" else text
    return chosen.format(**values) if values else chosen
