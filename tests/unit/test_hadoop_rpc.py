"""Tests Hadoop IPC over a real socket: logins, parallel calls, errors, and failover between ResourceManagers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from google.protobuf.message import Message
from hadoop_server import HadoopServer, Handler, Remote

from howdah.engines import AttemptOver
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_master_protocol import ApplicationMaster, ContainerRequest
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.hadoop import rpc
from howdah.hadoop.failover import FailoverClient
from howdah.hadoop.rpc import Address, RpcConnection, RpcError, SimpleLogin
from howdah.wire.credentials import Token

TOKEN = Token(b"identifier", b"secret", "YARN_AM_RM_TOKEN", "")


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


async def echo(method: str, request: bytes) -> Message:
    return pb.Priority(priority=pb.Priority.FromString(request).priority)


async def silent(method: str, request: bytes) -> Message:
    await asyncio.Event().wait()
    return pb.Empty()


async def ask(server: HadoopServer, login: rpc.Login, timeout: float = 5.0) -> int:
    connection = RpcConnection(server.address, "protocol", login)
    try:
        return (await connection.call("echo", pb.Priority(priority=7), pb.Priority, timeout)).priority
    finally:
        await connection.close()


def test_simple_login_names_the_user() -> None:
    async def test() -> None:
        async with HadoopServer(echo) as server:
            assert await ask(server, SimpleLogin("alice")) == 7
            assert server.users == ["alice"]

    run(test())


def test_a_token_login_names_no_user() -> None:
    async def test() -> None:
        async with HadoopServer(echo, {TOKEN.identifier: TOKEN.password}) as server:
            assert await ask(server, TOKEN) == 7
            assert (server.users, server.identifiers) == ([""], [TOKEN.identifier])

    run(test())


def test_a_wrong_token_is_refused() -> None:
    async def test() -> None:
        async with HadoopServer(echo, {TOKEN.identifier: b"other"}) as server:
            with pytest.raises(RpcError, match="SaslException"):
                await ask(server, TOKEN)

    run(test())


def test_a_server_that_proves_nothing_is_refused() -> None:
    async def test() -> None:
        async with HadoopServer(echo, {}, proves=False) as server:
            with pytest.raises(EngineRejected, match="without proving that it knows the secret"):
                await ask(server, TOKEN)
            assert server.users == []

    run(test())


def test_many_calls_in_flight_answered_in_any_order() -> None:
    async def backwards(method: str, request: bytes) -> Message:
        number = pb.Priority.FromString(request).priority
        arrived.append(number)
        if len(arrived) == 100:
            turns[99].set()
        await turns[number].wait()
        answered.append(number)
        turns[number - 1].set()
        return pb.Priority(priority=number)

    async def test() -> None:
        async with HadoopServer(backwards) as server:
            connection = RpcConnection(server.address, "protocol", SimpleLogin("a"))
            calls = (connection.call("x", pb.Priority(priority=n), pb.Priority) for n in range(100))
            assert [answer.priority for answer in await asyncio.gather(*calls)] == list(range(100))
            await connection.close()

    arrived: list[int] = []
    answered: list[int] = []
    turns = [asyncio.Event() for _ in range(100)]
    run(test())
    assert answered == list(range(100))[::-1]


def test_an_exception_has_its_class_and_first_line() -> None:
    async def refuse(method: str, request: bytes) -> Message:
        raise Remote("org.apache.hadoop.yarn.exceptions.YarnException", "unknown queue: x\n\tat a.b.c\n")

    async def test() -> None:
        async with HadoopServer(refuse) as server:
            with pytest.raises(RpcError) as caught:
                await ask(server, SimpleLogin("a"))
            assert str(caught.value) == "ResourceManager: YarnException: unknown queue: x"
            assert caught.value.java_class == "org.apache.hadoop.yarn.exceptions.YarnException"

    run(test())


def test_a_call_has_a_limit() -> None:
    async def test() -> None:
        async with HadoopServer(silent) as server:
            with pytest.raises(EngineUnavailable, match=r"did not answer echo within 0.05 s"):
                await ask(server, SimpleLogin("a"), 0.05)

    run(test())


def test_a_refused_connection_names_server_and_setting() -> None:
    async def test() -> None:
        async with HadoopServer(echo) as server:
            pass
        expected = rf"ResourceManager 127.0.0.1:{server.port} \(yarn.resourcemanager.address\): connection refused"
        with pytest.raises(EngineUnavailable, match=expected):
            await ask(server, SimpleLogin("a"))

    run(test())


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x04\xff\xff\xff\xff"])
def test_the_answer_of_another_kind_of_server_is_refused(answer: bytes) -> None:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer)
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(converse, "127.0.0.1", 0)
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        for login in (SimpleLogin("a"), TOKEN):
            connection = RpcConnection(address, "protocol", login)
            with pytest.raises(EngineUnavailable):
                await connection.call("x", pb.Empty(), pb.Empty)
            await connection.close()
        server.close()

    run(test())


def test_a_lost_connection_is_opened_again() -> None:
    async def test() -> None:
        async with HadoopServer(silent) as server:
            connection = RpcConnection(server.address, "protocol", SimpleLogin("a"))
            call = asyncio.ensure_future(connection.call("x", pb.Empty(), pb.Priority))
            while not server.users:
                await asyncio.sleep(0)
            await connection.close()
            with pytest.raises(EngineUnavailable, match="was closed"):
                await call
            server.handler = echo
            assert (await connection.call("x", pb.Priority(priority=3), pb.Priority)).priority == 3
            await connection.close()

    run(test())


async def standby(method: str, request: bytes) -> Message:
    raise Remote("org.apache.hadoop.ipc.StandbyException", "ResourceManager rm1 is not active")


def test_the_active_manager_is_found() -> None:
    async def test() -> None:
        async with HadoopServer(standby) as first, HadoopServer(echo) as gone, HadoopServer(echo) as active:
            await gone.__aexit__()
            addresses = [first.address, gone.address, active.address]
            managers = FailoverClient(addresses, "protocol", SimpleLogin("a"))
            assert (await managers.call("x", pb.Priority(priority=4), pb.Priority)).priority == 4
            await managers.close()
            again = FailoverClient(addresses, "protocol", SimpleLogin("a"))
            assert (await again.call("x", pb.Priority(priority=5), pb.Priority)).priority == 5
            await again.close()
            assert (first.users, active.users) == (["a"], ["a", "a"])

    run(test())


def test_no_manager_is_active() -> None:
    async def test() -> None:
        async with HadoopServer(standby) as first, HadoopServer(echo) as gone:
            await gone.__aexit__()
            managers = FailoverClient([first.address, gone.address], "protocol", SimpleLogin("a"))
            with pytest.raises(EngineUnavailable, match=r"is not active \(StandbyException\); .*connection refused"):
                await managers.call("x", pb.Empty(), pb.Empty)
            await managers.close()

    run(test())


class ForgetfulManager:
    """A ResourceManager that forgets its masters when told to, and grants what is asked plus `extra`."""

    def __init__(self) -> None:
        self.registered, self.extra, self.registrations = False, 0, 0
        self.asks: list[pb.AllocateRequest] = []
        self.new_token: Token | None = None

    async def __call__(self, method: str, request: bytes) -> Message:
        if method == "registerApplicationMaster":
            if self.registered:
                raise Remote(
                    "org.apache.hadoop.yarn.exceptions.InvalidX", "Application Master is already registered : a"
                )
            self.registered, self.registrations = True, self.registrations + 1
            return pb.RegisterResponse(queue="root.default")
        if not self.registered:
            raise Remote("org.apache.hadoop.yarn.exceptions.ApplicationMasterNotRegisteredException", "who?")
        return self.allocate(pb.AllocateRequest.FromString(request))

    def allocate(self, request: pb.AllocateRequest) -> pb.AllocateResponse:
        self.asks.append(request)
        response = pb.AllocateResponse(response_id=request.response_id + 1)
        for number in range(sum(asked.containers for asked in request.asks) + self.extra if request.asks else 0):
            response.allocated.add(
                id=pb.ContainerId(id=number + 1), allocation_request_id=request.asks[0].allocation_request_id
            )
        if self.new_token:
            new, self.new_token = self.new_token, None
            fields = {"identifier": new.identifier, "password": new.password, "kind": new.kind, "service": new.service}
            response.am_rm_token.CopyFrom(pb.Token(**fields))
        return response


WANTED = ContainerRequest(1, 1, 2, {"memory-mb": 256, "vcores": 1})


def test_what_is_wanted_is_said_again_to_a_manager_that_has_forgotten() -> None:
    async def test() -> None:
        manager = ForgetfulManager()
        async with HadoopServer(manager, {TOKEN.identifier: TOKEN.password}) as server:
            am = ApplicationMaster([server.address], TOKEN)
            await am.register("host", 1, "http://host:1/")
            am.request(WANTED)
            manager.registered = False
            assert len((await am.allocate()).allocated) == 0
            assert manager.registrations == 2
            assert len((await am.allocate()).allocated) == 2
            assert [request.response_id for request in manager.asks] == [0]
            assert not am.outstanding
            await am.allocate()
            assert len(manager.asks[-1].asks) == 0
            await am.close()

    run(test())


def test_a_registration_whose_answer_was_lost_is_no_error() -> None:
    async def test() -> None:
        manager = ForgetfulManager()
        manager.registered = True
        async with HadoopServer(manager, {TOKEN.identifier: TOKEN.password}) as server:
            am = ApplicationMaster([server.address], TOKEN)
            assert (await am.register("host", 1, "")).queue == ""
            await am.close()

    run(test())


def test_containers_beyond_what_is_wanted_are_given_back() -> None:
    async def test() -> None:
        manager = ForgetfulManager()
        manager.extra = 3
        async with HadoopServer(manager, {TOKEN.identifier: TOKEN.password}) as server:
            am = ApplicationMaster([server.address], TOKEN)
            await am.register("host", 1, "")
            am.request(WANTED)
            assert len((await am.allocate()).allocated) == 2
            await am.allocate()
            assert [id_.id for id_ in manager.asks[-1].releases] == [3, 4, 5]
            await am.close()

    run(test())


def test_an_ask_survives_a_heartbeat_that_failed() -> None:
    async def test() -> None:
        manager = ForgetfulManager()
        async with HadoopServer(manager, {TOKEN.identifier: TOKEN.password}) as server:
            am = ApplicationMaster([server.address], TOKEN)
            await am.register("host", 1, "")
            am.request(WANTED)
            am.release(pb.ContainerId(id=9))
            server.handler = standby
            with pytest.raises(EngineUnavailable):
                await am.allocate()
            server.handler = manager
            assert len((await am.allocate()).allocated) == 2
            assert [id_.id for id_ in manager.asks[-1].releases] == [9]
            await am.close()

    run(test())


async def finished_once(answer: Handler, refusal: str) -> None:
    """The last word has been heard; one that is said anew is refused."""
    async with HadoopServer(answer, {TOKEN.identifier: TOKEN.password}) as server:
        am = ApplicationMaster([server.address], TOKEN)
        await am.finish(1, "")
        with pytest.raises(RpcError, match=refusal):
            await am.finish(1, "")
        await am.close()


def test_the_last_word_was_heard_though_its_answer_was_not() -> None:
    answers = iter([pb.FinishResponse(unregistered=False)])

    async def finish(method: str, request: bytes) -> Message:
        for answer in answers:
            return answer
        raise Remote("org.apache.hadoop.security.token.SecretManager$InvalidToken", "appattempt_1 not found")

    run(finished_once(finish, "InvalidToken: appattempt_1"))


def test_a_resourcemanager_that_was_restarted_knows_no_more_of_an_attempt_that_has_ended() -> None:
    answers = iter([pb.FinishResponse(unregistered=False)])
    yarn = "org.apache.hadoop.yarn.exceptions."

    async def finish(method: str, request: bytes) -> Message:
        for answer in answers:
            return answer
        if method == "registerApplicationMaster":
            raise Remote(f"{yarn}InvalidApplicationMasterRequestException", "Application doesn't exist in cache")
        raise Remote(f"{yarn}ApplicationMasterNotRegisteredException", "not registered")

    run(finished_once(finish, "doesn't exist in cache"))


@pytest.mark.parametrize("refused", ["allocate", "registerApplicationMaster"])
@pytest.mark.parametrize(
    "name",
    ["yarn.exceptions.ApplicationAttemptNotFoundException", "security.token.SecretManager$InvalidToken"],
)
def test_an_attempt_that_has_ended_is_told_from_a_manager_that_refuses(refused: str, name: str) -> None:
    """A restarted ResourceManager says so when the attempt registers again."""
    manager = ForgetfulManager()

    async def answer(method: str, request: bytes) -> Message:
        if method == refused:
            raise Remote(f"org.apache.hadoop.{name}", "appattempt_1 is not known")
        return await manager(method, request)

    async def test() -> None:
        async with HadoopServer(manager, {TOKEN.identifier: TOKEN.password}) as server:
            am = ApplicationMaster([server.address], TOKEN)
            await am.register("host", 1, "")
            server.handler, manager.registered = answer, False
            with pytest.raises(AttemptOver, match=rf"YARN has ended it \({name.split('.')[-1].split('$')[-1]}\)"):
                await am.allocate()
            await am.close()

    run(test())


def test_a_renewed_token_is_used() -> None:
    async def test() -> None:
        manager, new = ForgetfulManager(), Token(b"new", b"newer secret", TOKEN.kind, "")
        manager.new_token = new
        passwords = {TOKEN.identifier: TOKEN.password}
        async with HadoopServer(manager, passwords) as server:
            am = ApplicationMaster([server.address], TOKEN)
            await am.register("host", 1, "")
            await am.allocate()
            del passwords[TOKEN.identifier]
            passwords[new.identifier] = new.password
            await am.allocate()
            assert server.identifiers == [TOKEN.identifier, new.identifier]
            await am.close()

    run(test())
