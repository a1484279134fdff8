"""What the command line says, in English or Chinese. English is the key; tests/unit/test_language.py finds what lacks.

HOWDAH_LANGUAGE (en, zh, auto) decides, else the user's `language` setting, else LC_ALL, LC_MESSAGES, LANG. Errors keep
English: people search for them. Help too is English in the code; `localise` translates a command when it is loaded.
"""

from __future__ import annotations

import os

import click

from howdah.client.userfile import language_setting

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
    "Files on HDFS: ls, get, put, head.": "HDFS 上的文件：ls、get、put、head。",
    "List, fetch, store and look into files on HDFS. Paths without a scheme are on the cluster's file system.": (
        "列出、下载、上传、查看 HDFS 上的文件。不带协议的路径位于集群的文件系统上。"
    ),
    "List PATH, a file, a directory, or a pattern.": "列出 PATH：文件、目录或通配模式。",
    "Fetch PATH, a file or a directory with all below it, to LOCAL.": "将 PATH（文件或整个目录）下载到 LOCAL。",
    "Store LOCAL, a file or a directory with all below it, as PATH.": "将 LOCAL（文件或整个目录）上传为 PATH。",
    "Replace files that exist.": "覆盖已存在的文件。",
    "Print the beginning of the file PATH.": "打印文件 PATH 的开头。",
    "How many bytes.": "字节数。",
    "{files} files, {size} bytes: {where}": "{files} 个文件，{size} 字节：{where}",
    "No command {name}.": "没有命令 {name}。",
    "Did you mean {nearest}?": "是否想输入 {nearest}？",
    "submitted {id} to {engine}": "已提交 {id} 到 {engine}",
    "page: {url}": "页面：{url}",
    "{task} joined on {host}": "{task} 已在 {host} 就绪",
    "{task} on {node}: {exit}": "{task}（{node}）：{exit}",
    "waiting for containers: {count} × {role}": "等待容器：{count} × {role}",
    "{task} runs: pid {pid}, {python}": "{task} 已启动：pid {pid}，{python}",
    "{reason}; asking again in {seconds} s": "{reason}；{seconds} 秒后重新申请",
    "starting again, epoch {epoch}: {reason}": "重新启动，第 {epoch} 轮：{reason}",
    "all it printed: howdah logs {id} {task}": "全部输出：howdah logs {id} {task}",
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
    # Help of commands and options
    "Show the version and exit.": "显示版本并退出。",
    "Run the job in JOB_FILE and follow it; exits with its result.": (
        "运行 JOB_FILE 描述的作业并跟踪其进展；以作业的结果作为退出码。"
    ),
    "Submit the job in JOB_FILE and print its id.": "提交 JOB_FILE 描述的作业并打印其编号。",
    "Show what submit would do with JOB_FILE, and change nothing.": "显示提交 JOB_FILE 将执行的操作，不作任何更改。",
    "Print the JSON Schema of job files, for editors.": "打印作业文件的 JSON Schema，供编辑器使用。",
    "local, yarn, or another installed engine.": "local、yarn 或其他已安装的引擎。",
    "A profile of your configuration.": "配置文件中的一个 profile。",
    "A variable or field of the job.": "作业的一个变量或字段。",
    "Name, over the job's.": "名称，优先于作业文件。",
    "Queue, over the job's.": "队列，优先于作业文件。",
    "Replace outputs that exist.": "覆盖已存在的输出。",
    "JSON, for programs.": "JSON 输出，供程序使用。",
    "Whose output to show: chief, all, none, a role, a task.": "显示谁的输出：chief、all、none、某个角色或某个任务。",
    "What Ctrl-C does to the job.": "按 Ctrl-C 时如何处理作业。",
    "List your jobs, the newest first.": "列出你的作业，最新的在前。",
    "Only this engine's jobs.": "只列出该引擎的作业。",
    "One JSON object a line.": "每行一个 JSON 对象。",
    "Everything, as one JSON object.": "全部内容，一个 JSON 对象。",
    "Print the logs of JOB_ID, or of its TASK (worker:1).": "打印 JOB_ID 或其任务 TASK（如 worker:1）的日志。",
    "Go on until the job ends.": "持续输出，直到作业结束。",
    "Only this stream.": "只输出该流。",
    "From the beginning, not the last 64 KiB.": "从头输出，而不是最后 64 KiB。",
    "One JSON object a piece.": "每段一个 JSON 对象。",
    "End a job: its master is asked first, then the engine.": "结束作业：先请求其主控程序，再请求引擎。",
    "The report as JSON.": "以 JSON 输出报告。",
    "A real Hadoop on this machine's loopback: NameNode, DataNode, ResourceManager, NodeManagers.": (
        "在本机回环地址上运行真实的 Hadoop：NameNode、DataNode、ResourceManager、NodeManager。"
    ),
    "Start it; `howdah run --on yarn` uses it from then on, unless HADOOP_CONF_DIR says otherwise.": (
        "启动沙箱；此后 `howdah run --on yarn` 即使用它，除非另设 HADOOP_CONF_DIR。"
    ),
    "Version: 3.3, 3.4, 3.5, or a full one.": "版本：3.3、3.4、3.5 或完整版本号。",
    "NodeManagers.": "NodeManager 的数量。",
    "Stop its daemons, and remove its data.": "停止其守护进程并删除数据。",
    "Keep its data for the next `up`.": "保留数据，供下次 `up` 使用。",
    "List its daemons.": "列出其守护进程。",
    'Print the line that points Hadoop clients at it: `eval "$(howdah sandbox env)"`.': (
        '打印让 Hadoop 客户端指向沙箱的命令行：`eval "$(howdah sandbox env)"`。'
    ),
    "Show every setting and where it came from; `get`, `set` and `path` for one.": (
        "显示所有设置及其来源；`get`、`set`、`path` 用于单项。"
    ),
    "One JSON object.": "一个 JSON 对象。",
    "Print the value of KEY.": "打印 KEY 的值。",
    "Set KEY to VALUE in your own file.": "在你自己的配置文件中将 KEY 设为 VALUE。",
    "Set it in this profile.": "设在该 profile 中。",
    "Print where your own file is.": "打印你自己的配置文件的位置。",
    "Submit as XLearning's xl-submit does, to YARN unless HOWDAH_ENGINE says otherwise.": (
        "与 XLearning 的 xl-submit 用法相同；提交到 YARN，除非 HOWDAH_ENGINE 另有指定。"
    ),
}
_language = "en"


def choose(wanted: str = "") -> str:
    """Set the language from `wanted`, the environment or the user's settings; the one chosen."""
    global _language
    wanted = wanted or os.environ.get("HOWDAH_LANGUAGE") or language_setting(os.environ) or "auto"
    if wanted == "auto":
        names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
        wanted = next((name for name in names if name), "en")
    _language = "zh" if wanted.lower().startswith("zh") else "en"
    return _language


def say(text: str, **values: object) -> str:
    """`text` in the chosen language, with `{name}` filled in."""
    chosen = _ZH.get(text, text) if _language == "zh" else text
    return chosen.format(**values) if values else chosen


def localise(command: click.Command) -> None:
    """Put its help, that of its options and of its sub-commands into the chosen language."""
    command.help = say(command.help or "")
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            option.help = say(option.help)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        localise(below)
