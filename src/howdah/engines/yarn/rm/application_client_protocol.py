"""ApplicationClientProtocol: a user's calls to the ResourceManager."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.hadoop.failover import FailoverClient
from howdah.hadoop.rpc import RpcError

PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"
ACCEPT_TIMEOUT_S = 60.0
"""Limit in seconds for the ResourceManager to store a submission and accept it; usually it takes less than one."""
KILL_TIMEOUT_S = 30.0
FAILOVER_S = 20.0
"""ZooKeeper notices after 10 s that an active ResourceManager has died; the next one then reads its state."""
_NEW, _NEW_SAVING, _SUBMITTED = 1, 2, 3
_FAILED, _KILLED = 7, 8


class ResourceManagerClient:
    """Asks the ResourceManager. Every method raises EngineUnavailable if no ResourceManager answers, and RpcError if
    one refuses.

    If there are several, the client waits up to `limit_s` seconds for one of them to become active; it does not wait
    for a single one that is down.
    """

    def __init__(self, configuration: Configuration, limit_s: float = FAILOVER_S) -> None:
        addresses = configuration.resourcemanagers()
        self._rm = FailoverClient(addresses, PROTOCOL, configuration.login(), limit_s if len(addresses) > 1 else 0.0)

    async def __aenter__(self) -> ResourceManagerClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rm.close()

    async def new_application(self) -> pb.NewApplication:
        """Return a new id, and the largest container that the scheduler may grant."""
        return await self._rm.call("getNewApplication", pb.Empty(), pb.NewApplication)

    async def submit(self, context: pb.SubmissionContext) -> pb.ApplicationReport:
        """Submit and wait until the scheduler has taken the application.

        Raises:
            EngineRejected: the scheduler refused it; the message is its own.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + ACCEPT_TIMEOUT_S
        await self._submit(context)
        while True:
            report = await self.report(context.application_id)
            if report is None:  # the manager that took it died before it had written it down
                await self._submit(context)
            elif report.state in (_FAILED, _KILLED):
                raise EngineRejected(f"YARN refused the job: {report.diagnostics.strip()}")
            elif report.state not in (_NEW, _NEW_SAVING, _SUBMITTED):
                return report
            if clock() > deadline:
                raise EngineUnavailable(
                    f"the ResourceManager has not accepted {records.application_id(context.application_id)} "
                    f"within {ACCEPT_TIMEOUT_S:g} s"
                )
            await asyncio.sleep(0.05)

    async def _submit(self, context: pb.SubmissionContext) -> None:
        await self._rm.call("submitApplication", pb.SubmitRequest(context=context), pb.Empty)

    async def report(self, application_id: pb.ApplicationId) -> pb.ApplicationReport | None:
        """Return the application's report; None if the ResourceManager does not know it, or no longer."""
        try:
            request = pb.ApplicationRequest(id=application_id)
            return (await self._rm.call("getApplicationReport", request, pb.ApplicationResponse)).report
        except RpcError as error:
            if error.name == "ApplicationNotFoundException":
                return None
            raise

    async def attempt_diagnostics(self, application_id: pb.ApplicationId, number: int) -> str:
        """Return the diagnostics about the end of attempt `number` of the application."""
        request = pb.AttemptRequest(id=pb.AttemptId(application_id=application_id, attempt=number))
        answer = await self._rm.call("getApplicationAttemptReport", request, pb.AttemptResponse)
        return answer.report.diagnostics

    async def reports(
        self,
        types: Iterable[str] = (),
        users: Iterable[str] = (),
        tags: Iterable[str] = (),
        states: Iterable[int] = (),
    ) -> list[pb.ApplicationReport]:
        """Return the applications that match all of the given criteria."""
        request = pb.ApplicationsRequest(types=types, users=users, tags=tags, states=states)
        return list((await self._rm.call("getApplications", request, pb.ApplicationsResponse)).reports)

    async def kill(self, application_id: pb.ApplicationId, diagnostics: str = "") -> None:
        """Kill the application and return when it has ended; do nothing if it is unknown or has ended."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + KILL_TIMEOUT_S
        request = pb.ApplicationRequest(id=application_id, diagnostics=diagnostics)
        try:
            while not (await self._rm.call("forceKillApplication", request, pb.KillResponse)).completed:
                if clock() > deadline:
                    raise EngineUnavailable(
                        f"{records.application_id(application_id)} has not ended "
                        f"{KILL_TIMEOUT_S:g} s after the kill request"
                    )
                await asyncio.sleep(0.1)
        except RpcError as error:
            if error.name != "ApplicationNotFoundException":
                raise

    async def queue(self, name: str) -> pb.QueueInfo | None:
        """Return the queue with its children, all the way down; None if there is none of that name."""
        request = pb.QueueRequest(name=name, children=True, recursive=True)
        try:
            answer = await self._rm.call("getQueueInfo", request, pb.QueueResponse)
            return answer.queue if answer.queue.name else None
        except RpcError as error:
            if "unknown queue" in error.text.lower():
                return None
            raise

    async def submittable_queues(self) -> list[str]:
        """Return the names of the leaf queues to which this user may submit."""
        answer = await self._rm.call("getQueueUserAcls", pb.Empty(), pb.QueueAclsResponse)
        allowed = {acl.queue.rpartition(".")[2] for acl in answer.queues if 1 in acl.acls}
        root = await self.queue("root")
        return [leaf for leaf in list_leaf_queues(root) if leaf in allowed] if root else []

    async def nodes(self, states: Iterable[int] = (records.NODE_RUNNING,)) -> list[pb.NodeReport]:
        """Return the nodes that take containers now, or those in other `states`."""
        request = pb.NodesRequest(states=states)
        return list((await self._rm.call("getClusterNodes", request, pb.NodesResponse)).nodes)

    async def node_labels(self) -> list[str]:
        """Return the names of the cluster's node labels."""
        answer = await self._rm.call("getClusterNodeLabels", pb.Empty(), pb.NodeLabelsResponse)
        return [label.name for label in answer.labels]

    async def delegation_token(self, renewer: str) -> pb.Token:
        """Return a token that logs in as this user without Kerberos; getting it needs a Kerberos login."""
        request = pb.DelegationTokenRequest(renewer=renewer)
        return (await self._rm.call("getDelegationToken", request, pb.DelegationTokenResponse)).token


def list_leaf_queues(queue: pb.QueueInfo) -> list[str]:
    """Return the names of the queues below `queue` that have no children; those take applications."""
    return [leaf for child in queue.children for leaf in list_leaf_queues(child)] if queue.children else [queue.name]
