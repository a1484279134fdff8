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
    "What a job's programs are doing: their stacks.": "作业的程序正在做什么：各线程的调用栈。",
    "Why a job waits, failed, or started again.": "作业为何等待、失败或重新启动。",
    "Check this machine's and the cluster's set-up.": "检查本机与集群的设置。",
    "Show the stacks of all threads of JOB_ID's programs, or of its TASK's (worker:1); they are kept with the job.": (
        "显示作业 JOB_ID（或其任务 TASK，如 worker:1）的程序所有线程的调用栈，并随作业保存。"
    ),
    "With the frames of C and C++ libraries; large ones take a while.": (
        "包含 C 与 C++ 库的栈帧；库较大时需要一些时间。"
    ),
    "Those that were kept last, not what runs now.": "显示最近保存的，而不是现在的。",
    "kept in {uri}": "已保存到 {uri}",
    "not kept: {problem}": "未能保存：{problem}",
    "Say why JOB_ID waits, why it failed, and what was started again.": (
        "说明作业 JOB_ID 为何等待、为何失败，以及哪些部分曾重新启动。"
    ),
    "what happened:": "经过：",
    "{role} waits for {count} more containers": "{role} 还在等待 {count} 个容器",
    "{role} begins when {before} ended well": "{before} 成功结束后 {role} 才开始",
    "it waits for its master's container": "正在等待主控进程的容器",
    "queue {queue} is stopped: it grants nothing": "队列 {queue} 已停用，不分配任何容器",
    "queue {queue} uses {used} of at most {limit}; {needs} more are wanted": (
        "队列 {queue} 已用 {used}，上限 {limit}；还需要 {needs}"
    ),
    "queue {queue} uses {used} of at most {limit} on nodes labelled {label}; {needs} more are wanted": (
        "队列 {queue} 在标签为 {label} 的节点上已用 {used}，上限 {limit}；还需要 {needs}"
    ),
    "{count} jobs wait in queue {queue}": "队列 {queue} 中有 {count} 个作业在等待",
    "{user} uses {used} of at most {limit} in queue {queue}; {needs} more are wanted": (
        "用户 {user} 在队列 {queue} 中已用 {used}，上限 {limit}；还需要 {needs}"
    ),
    "{role}: no node that runs has the label {label}": "{role}：运行中的节点都没有标签 {label}",
    "{role} is placed as {constraint} says (placement.constraint): a node with room may not satisfy it": (
        "{role} 按 {constraint}（placement.constraint）放置：有空余的节点也可能不满足该约束"
    ),
    "nodes that take no containers: {nodes}": "不接受容器的节点：{nodes}",
    "{role} needs {needs}; too small for it: {nodes}": "{role} 需要 {needs}；容量不足的节点：{nodes}",
    "{role} needs {needs}; occupied: {nodes}": "{role} 需要 {needs}；已被占用的节点：{nodes}",
    "{role}: there is room on {nodes}; the scheduler gives it in its turn": (
        "{role}：{nodes} 上有空间，调度器会依次分配"
    ),
    "why: {reason}": "原因：{reason}",
    "first: {task} on {node}: {exit}": "首先失败：{task}（{node}）：{exit}",
    "what to do: {advice}": "建议：{advice}",
    "raise resources.memory, or let it grow with resources.growth": (
        "增大 resources.memory，或用 resources.growth 让其自动增长"
    ),
    "nothing is wrong with the job, which the cluster stopped too often: checkpoint to lose little": (
        "作业本身没有问题，只是被集群中断过多：请保存检查点以减少损失"
    ),
    "nothing is wrong with the job: have the node's GPU looked at": ("作业本身没有问题：请检查该节点的 GPU"),
    "nothing is wrong with the job, which gave way too often: take a queue with a guarantee": (
        "作业本身没有问题，只是让出资源过多：请使用有资源保证的队列"
    ),
    "look whether the node still lives, and into the executor's log": "检查节点是否存活，并查看执行器的日志",
    "look whether the inputs are there and may be read, and at the node's disks": (
        "检查输入是否存在且可读，以及节点的磁盘"
    ),
    "let howdah reserve the ports (roles.NAME.ports) instead of fixed numbers": (
        "让 howdah 预留端口（roles.NAME.ports），不要使用固定端口号"
    ),
    "look whether the command and its Python are on the nodes (environment)": (
        "检查节点上是否有该命令及其 Python（environment）"
    ),
    "howdah stacks --last shows where the programs were": "用 howdah stacks --last 查看程序停在何处",
    "its programs run; nothing is waited for": "程序正在运行，没有等待任何资源",
    "{task}: {what}": "{task}：{what}",
    "{tasks}: no sign of progress for {seconds} s": "{tasks}：{seconds} 秒没有任何进展",
    "no stacks: {problem}": "没有调用栈：{problem}",
    "stacks: {uri}": "调用栈：{uri}",
    "nobody in particular": "没有特定的任务",
    "suspected: {tasks}{reason}; stacks: {uri}": "可疑任务：{tasks}{reason}；调用栈：{uri}",
    "{task} is in line with its role again": "{task} 已恢复到与同角色任务一致",
    "{task} is out of line: {what} {value}, its role's median {median}": (
        "{task} 偏离同角色任务：{what} {value}，中位数 {median}"
    ),
    "Check this machine's and the cluster's set-up; ends with 1 if something must be mended.": (
        "检查本机与集群的设置；若有必须修复之处，则以 1 退出。"
    ),
    "local, yarn; unset: this machine, and the cluster if there is one.": (
        "local 或 yarn；不指定时检查本机，如有集群也一并检查。"
    ),
    "Start a small job too, on up to eight nodes.": "再启动一个小作业，最多在八个节点上运行。",
    "set HADOOP_CONF_DIR, or `howdah config set hadoop_conf_dir DIR`, to run jobs there": (
        "设置 HADOOP_CONF_DIR，或执行 `howdah config set hadoop_conf_dir DIR`，即可在集群上运行作业"
    ),
    "no cluster is configured; {advice}": "未配置集群；{advice}",
    "installed": "已安装",
    "missing: {modules}": "缺少：{modules}",
    "jobs": "作业",
    "cache": "缓存",
    "make it writable, or set HOWDAH_HOME to a place that is": "使其可写，或将 HOWDAH_HOME 设为可写的位置",
    "{path} can't be written": "{path} 不可写",
    "{path}: {free} MiB free": "{path}：剩余 {free} MiB",
    "make room, or set HOWDAH_HOME": "清理空间，或设置 HOWDAH_HOME",
    "not here: stacks show what the kernel says only": "未安装：调用栈只显示内核所知的内容",
    "this machine lets nobody look into programs (kernel.yama.ptrace_scope)": (
        "本机不允许查看程序（kernel.yama.ptrace_scope）"
    ),
    "{memory}, {vcores} vcores, {gpus} GPUs for jobs": "作业可用：{memory}，{vcores} 个虚拟核，{gpus} 个 GPU",
    "jobs run without memory limits; give your user control groups (systemd: Delegate=memory)": (
        "作业将不受内存限制；请为你的用户授权控制组（systemd：Delegate=memory）"
    ),
    "memory limits are enforced": "内存限制有效",
    "there are GPUs, but nothing to measure them with": "有 GPU，但缺少测量工具",
    "job on {engine}": "{engine} 上的作业",
    "programs find no python3 there": "程序在该节点上找不到 python3",
    "copy the cluster's core-site.xml and yarn-site.xml there": "将集群的 core-site.xml 和 yarn-site.xml 复制到该处",
    "staging": "暂存目录",
    "you have no ticket, and the cluster wants one": "你没有票据，而集群要求票据",
    "a ticket of {holder}": "{holder} 的票据",
    "look whether a firewall lies between, and at yarn.resourcemanager.address": (
        "检查是否有防火墙阻隔，以及 yarn.resourcemanager.address"
    ),
    "{where}: no answer within {seconds} s": "{where}：{seconds} 秒内没有应答",
    "look whether it runs, and at yarn.resourcemanager.address in {directory}": (
        "检查它是否在运行，以及 {directory} 中的 yarn.resourcemanager.address"
    ),
    "queues": "队列",
    "you may not submit to any": "你不能向任何队列提交作业",
    "ask the cluster's administrators": "请联系集群管理员",
    "yours are: {queues}": "可用的队列：{queues}",
    "you may not submit to {queue}, your setting": "你不能向设置中的队列 {queue} 提交作业",
    "nodes": "节点",
    "none takes containers now": "目前没有节点接受容器",
    "{count} with {memory} GiB in all": "{count} 个，共 {memory} GiB 内存",
    "{count} GPUs in all": "共 {count} 个 GPU",
    "no node offers yarn.io/gpu": "没有节点提供 yarn.io/gpu",
    "{count} take no containers: {nodes}": "{count} 个不接受容器：{nodes}",
    "{uri} answers in {ms} ms": "{uri} 在 {ms} 毫秒内应答",
    "{uri} can be written and read": "{uri} 可读写",
    "{uri}: what was written is not what is read": "{uri}：读到的内容与写入的不同",
    "pages": "页面",
    "{address} answers, and wants a login": "{address} 有应答，并要求登录",
    "{address} answers": "{address} 有应答",
    "jobs run all the same; `howdah page` shows them without the proxy": (
        "不影响作业运行；`howdah page` 可不经代理查看页面"
    ),
    "clock": "时钟",
    "{seconds} s apart from the cluster's": "与集群相差 {seconds} 秒",
    "set it by NTP: messages older than five minutes are refused": "请用 NTP 校时：超过五分钟的消息会被拒绝",
    "set it by NTP": "请用 NTP 校时",
    "The page of all jobs.": "所有作业的页面。",
    "Which job a container or process is of.": "容器或进程属于哪个作业。",
    "Serve the page of all jobs, those that run and those that were, until it is stopped.": (
        "提供所有作业（正在运行的和已结束的）的页面，直到被停止。"
    ),
    "Port; 0 takes any free one.": "端口；0 表示任意空闲端口。",
    "Address to listen at; 0.0.0.0 is every one.": "监听地址；0.0.0.0 表示所有地址。",
    "Another home with jobs in it; * stands for any name.": "另一个存放作业的目录；* 代表任意名称。",
    "How long ended jobs are listed, such as 90d; else for ever.": "已结束的作业保留多久，例如 90d；否则永久保留。",
    "With --keep: remove the directories of your jobs, too.": "与 --keep 一起使用：同时删除你的作业的目录。",
    "Run it as a job there, and print its address.": "在那里作为作业运行，并打印其地址。",
    "Tell which job and task OF was: a container's id, host:pid, or host/gpu3.": (
        "说明 OF 属于哪个作业和任务：容器的编号、host:pid，或 host/gpu3。"
    ),
    "history: {url}": "历史页面：{url}",
    "{id} runs already": "{id} 已在运行",
    "TensorBoard of a job, or of all jobs.": "一个作业或所有作业的 TensorBoard。",
    "TensorBoard of JOB_ID, or of all jobs that you may read, wherever their event files are.": (
        "JOB_ID 或你可读取的所有作业的 TensorBoard，无论事件文件位于何处。"
    ),
    "Of all jobs those of these users, with commas between.": "所有作业中这些用户的，以逗号分隔。",
    "Of all jobs those with TEXT in their name.": "所有作业中名称包含 TEXT 的。",
    "End the one that runs beside the job.": "结束在作业旁运行的 TensorBoard。",
    "On this machine, although the job runs.": "即使作业正在运行，也在本机上启动。",
    "Of all jobs there, as a job there.": "该引擎上所有作业的 TensorBoard，以作业的形式在该引擎上运行。",
    "Of all jobs the newest N.": "所有作业中最新的 N 个。",
    "Port on this machine; any by default.": "本机端口；默认任选。",
    "How long it stays unlooked at.": "无人查看多久后自动结束。",
    "TensorBoard is open on {host}: `howdah status` has its link": (
        "TensorBoard 已在 {host} 上打开：`howdah status` 显示其链接"
    ),
    "TensorBoard has ended: {reason}": "TensorBoard 已结束：{reason}",
    "TensorBoard: {url}": "TensorBoard：{url}",
    "TensorBoard of {id} starts": "{id} 的 TensorBoard 正在启动",
    "TensorBoard of {id} is asked to end": "已请求结束 {id} 的 TensorBoard",
    "A link to a running job's page.": "运行中作业的页面链接。",
    "A link to pass on: its holder may look, and change nothing.": "可转发的链接：持有者只能查看，不能更改任何内容。",
    "A link for other people's pages: the job's curves alone.": "供其他网页嵌入的链接：只显示作业的曲线。",
    "Only print where that job's curves are for other pages.": "仅打印该作业曲线供其他网页嵌入的地址。",
    "How long the link may act; after that it still shows.": "链接可执行操作的小时数；此后仍可查看。",
    "Print a link to the page of JOB_ID. Who has it may cancel the job: pass on one with --look-only instead.": (
        "打印 JOB_ID 的页面链接。持有者可以取消作业：要转发请改用 --look-only。"
    ),
    "A real Hadoop on this machine's loopback.": "在本机回环地址上运行真实的 Hadoop。",
    "Show and change settings.": "查看和修改设置。",
    "Print the JSON Schema of job files.": "打印作业文件的 JSON Schema。",
    "XLearning's submit command.": "XLearning 的提交命令。",
    "HBox's submit command.": "HBox 的提交命令。",
    "Submit as HBox's hbox-submit does, to YARN unless HOWDAH_ENGINE says otherwise.": (
        "与 HBox 的 hbox-submit 用法相同地提交；除非 HOWDAH_ENGINE 另有指定，否则提交到 YARN。"
    ),
    "Submarine's job run, show, list, kill.": "Submarine 的 job run、show、list、kill。",
    "Submit as Submarine 0.1 to 0.4 does: job run; and job show, list, kill by --name or id.": (
        "与 Submarine 0.1–0.4 用法相同地提交：job run；另有 job show、list、kill，按 --name 或编号。"
    ),
    "Another system's command line, as a job file.": "将其他系统的命令行转换为作业文件。",
    "Print the job file that says what ARGUMENTS say to SYSTEM: xl-submit, hbox-submit, tony, submarine, azkaban.": (
        "打印与 SYSTEM 的命令行 ARGUMENTS 含义相同的作业文件：xl-submit、hbox-submit、tony、submarine、azkaban。"
    ),
    "TonY's submit commands.": "TonY 的提交命令。",
    "A TonY job from Azkaban's properties.": "由 Azkaban 属性文件描述的 TonY 作业。",
    "TonY's history, into howdah's.": "将 TonY 的历史导入 howdah。",
    "Submit as TonY's submitters do: cluster (the default), local or notebook, or their class names.": (
        "与 TonY 的提交程序用法相同：cluster（默认）、local、notebook，或其类名。"
    ),
    "Run the TonY job that Azkaban's properties in FILES describe; later files win.": (
        "运行 FILES 中 Azkaban 属性所描述的 TonY 作业；后面的文件优先。"
    ),
    "Import TonY's .jhist files, or all those below a directory; `list` and `status` show them from then on.": (
        "导入 TonY 的 .jhist 文件，或某目录下的全部；此后可用 `list` 和 `status` 查看。"
    ),
    "Where to: the URI of an engine's home; this machine's, if not given.": "目标：引擎主目录的 URI；默认为本机的。",
    "{id}: {state}, {tasks} tasks": "{id}：{state}，{tasks} 个任务",
    "the notebook is at http://localhost:{port}": "笔记本地址：http://localhost:{port}",
    "from elsewhere: ssh -L 18888:localhost:{port} {host}": "从其他机器访问：ssh -L 18888:localhost:{port} {host}",
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
    "{files} files, {size} MiB in {seconds} s": "{files} 个文件，{size} MiB，用时 {seconds} 秒",
    "{files} files, {size} MiB in {seconds} s, {kept} MiB of them kept on the node": (
        "{files} 个文件，{size} MiB，用时 {seconds} 秒，其中 {kept} MiB 来自节点缓存"
    ),
    "{task} takes the container of {giver} on {node}": "{task} 接用 {giver} 在 {node} 上的容器",
    "{role} goes on with {count} tasks: {reason}": "{role} 以 {count} 个任务继续：{reason}",
    "{task} joined on {host}": "{task} 已在 {host} 就绪",
    "{task} on {node}: {exit}": "{task}（{node}）：{exit}",
    "pre-flight passed on {nodes} nodes in {seconds} s": "预检通过：{nodes} 个节点，用时 {seconds} 秒",
    "; slowest {task} on {node}": "；最慢的是 {task}（{node}）",
    "; left out: {what}": "；未检查：{what}",
    "waiting for containers: {count} × {role}": "等待容器：{count} × {role}",
    "{task} runs: pid {pid}, {python}": "{task} 已启动：pid {pid}，{python}",
    "{reason}; asking again in {seconds} s": "{reason}；{seconds} 秒后重新申请",
    "starting again, epoch {epoch}: {reason}": "重新启动，第 {epoch} 轮：{reason}",
    "the master's clock was set back by {seconds} s": "主控进程的时钟被回拨了 {seconds} 秒",
    "the master stood still, or its clock was set, for {seconds} s": "主控进程停顿或时钟被拨动，共 {seconds} 秒",
    "attempt {attempt} of the master took over on {host}": "主控进程第 {attempt} 次尝试已在 {host} 上接管",
    "all it printed: howdah logs {id} {task}": "全部输出：howdah logs {id} {task}",
    "{task} has a container on {node}": "{task} 已获得 {node} 上的容器",
    "output: {uri}": "输出：{uri}",
    "stopping: {reason}": "正在停止：{reason}",
    "{id} {state}": "{id} {state}",
    "the job goes on; `howdah status {id}` and `howdah cancel {id}` reach it": (
        "作业继续运行；可用 `howdah status {id}` 和 `howdah cancel {id}` 访问"
    ),
    "streamed: {size} MiB, {share} of it on the task's own node": "流式读取：{size} MiB，其中 {share} 位于任务所在节点",
    "cancelling {id}": "正在取消 {id}",
    "Copy a running job's outputs as they are now.": "复制运行中作业当前的输出。",
    "Copy the outputs of a running job as they are now; its programs go on.": (
        "按当前状态复制运行中作业的输出；程序继续运行。"
    ),
    "Only outputs.N of the job file, counted from 0.": "只复制作业文件中的 outputs.N，从 0 开始计数。",
    "Return when the copy is complete.": "副本完成后才返回。",
    "copy {copy} of outputs.{number}: `howdah status {id}` shows it": (
        "outputs.{number} 的副本 {copy}：可用 `howdah status {id}` 查看"
    ),
    "no copy of outputs.{number}: {reason}": "outputs.{number} 没有副本：{reason}",
    "copying outputs.{number}: {done} of {tasks} tasks": "正在复制 outputs.{number}：{tasks} 个任务中已完成 {done} 个",
    "copy: {uri} ({total} files, {files} of them new, {bytes} bytes)": (
        "副本：{uri}（{total} 个文件，其中 {files} 个是新的，{bytes} 字节）"
    ),
    "(removed)": "（已删除）",
    "left out: {what}": "未包含：{what}",
    "resumed from {uri}": "已从 {uri} 恢复",
    "the newest {count} copies:": "最近的 {count} 个副本：",
    "copying outputs.{number} of {tasks} tasks to {uri}": "正在将 {tasks} 个任务的 outputs.{number} 复制到 {uri}",
    "copy {number} is complete: {files} files, {bytes} bytes copied": (
        "副本 {number} 已完成：{files} 个文件，复制了 {bytes} 字节"
    ),
    "no copy {number}: {reason}": "没有副本 {number}：{reason}",
    "passed over: {what}": "跳过：{what}",
    "going on from {uri}": "从 {uri} 继续",
    "no checkpoint yet: the programs begin anew": "还没有检查点：程序从头开始",
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
    "the job's tokens for HDFS end on {date}, and it may run longer; then it loses HDFS: set timeouts.run": (
        "作业的 HDFS 令牌将于 {date} 到期，而作业可能运行更久，届时将无法访问 HDFS：请设置 timeouts.run"
    ),
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
    "Also those that only a history server knows, others' as well.": "也列出只有历史服务器知道的作业，包括他人的。",
    "Only these users' jobs, with commas between.": "只列出这些用户的作业，以逗号分隔。",
    "Only jobs in these states, such as FAILED,CANCELLED.": "只列出处于这些状态的作业，例如 FAILED,CANCELLED。",
    "Only jobs with this in their name.": "只列出名称中含有该文字的作业。",
    "Only jobs with all these words in name, id or diagnostics.": "只列出名称、ID 或诊断信息中含有全部这些词的作业。",
    "Only jobs that began within this time, such as 12h or 7d.": "只列出最近一段时间内开始的作业，例如 12h 或 7d。",
    "At most so many; 200 with --history, else all.": "最多列出的数目；带 --history 时默认 200，否则全部。",
    "the newest {count} jobs; --limit shows more": "最新的 {count} 个作业；用 --limit 可列出更多",
    "One JSON object a line.": "每行一个 JSON 对象。",
    "Everything, as one JSON object.": "全部内容，一个 JSON 对象。",
    "Print the logs of JOB_ID, or of tasks (worker:1), roles (worker) or ranks (worker:0-7) of it.": (
        "打印 JOB_ID 的日志，或其中某些任务（worker:1）、角色（worker）、编号范围（worker:0-7）的日志。"
    ),
    "Only this stream; both as one.": "只输出该流；both 表示两个流合为一个。",
    "Of this attempt, or of all.": "只输出该次尝试，all 表示全部。",
    "Only lines of this level.": "只输出该级别的行。",
    "Only lines with this regular expression.": "只输出匹配该正则表达式的行。",
    "Only lines since 10m ago, or since 2026-11-21T18:00.": "只输出最近 10m 以来，或 2026-11-21T18:00 以来的行。",
    "Only the last N lines.": "只输出最后 N 行。",
    "All tasks as one, in the order of time.": "将所有任务的输出按时间合并。",
    "done in about {time}": "预计还需 {time}",
    "{role}: asked for {asked} GiB of memory a task, used at most {used} GiB": (
        "{role}：每个任务申请内存 {asked} GiB，最多使用 {used} GiB"
    ),
    "{role}: asked for {asked} GiB of memory a task and used {used} GiB: close to the limit": (
        "{role}：每个任务申请内存 {asked} GiB，使用了 {used} GiB，接近上限"
    ),
    "{role}: asked for {asked} cores a task, used {used} on average": (
        "{role}：每个任务申请 {asked} 核，平均使用 {used} 核"
    ),
    "{role}: its programs waited {share} of the time for their input streams": (
        "{role}：其程序有 {share} 的时间在等待输入流"
    ),
    "{role}: its GPUs were idle {idle} of the time": "{role}：其 GPU 有 {idle} 的时间空闲",
    "{role}: its processes waited for a disk in {share} of the samples": "{role}：{share} 的采样中其进程在等待磁盘",
    "{task}: GPU {gpu} reported {count} critical errors, the last with XID {xid}": (
        "{task}：GPU {gpu} 报告了 {count} 个严重错误，最近一个为 XID {xid}"
    ),
    "{task}: GPU {gpu} has {count} uncorrected memory errors": "{task}：GPU {gpu} 有 {count} 个未纠正的显存错误",
    "Go on until the job ends.": "持续输出，直到作业结束。",
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


def retold(text: object) -> str:
    """A sentence that a master, an executor, an engine or a dialect wrote down in English, in the chosen language as
    far as its template is known."""
    if _language != "zh":
        return str(text)
    from howdah.web.sentences import in_chinese  # who reads English needs no table

    return in_chinese(str(text))


def localise(command: click.Command) -> None:
    """Put its help, that of its options and of its sub-commands into the chosen language."""
    command.help = say(command.help or "")
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            option.help = say(option.help)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        localise(below)
