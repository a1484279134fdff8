"""Submits applications without a real master: the test plays the master."""

from __future__ import annotations

import asyncio

from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.wire.credentials import Token


async def unmanaged(configuration: Configuration, queue: str = "default") -> tuple[pb.ApplicationId, Token]:
    """Submit an application that waits for its master, and return the token to register with."""
    async with ResourceManagerClient(configuration) as rm:
        context = pb.SubmissionContext(
            application_id=(await rm.new_application()).id,
            name="unmanaged",
            queue=queue,
            unmanaged=True,
            max_attempts=1,
            keep_containers=True,  # as of all our jobs; it lets another process register for the same attempt
            resource=records.to_resource({records.MEMORY: 64, records.VCORES: 1}),
            master=pb.LaunchContext(),
        )
        report = await rm.submit(context)
        while not report.HasField("am_rm_token"):
            await asyncio.sleep(0.02)
            found = await rm.report(context.application_id)
            assert found is not None
            report = found
    token = report.am_rm_token
    return context.application_id, Token(token.identifier, token.password, token.kind, token.service)
