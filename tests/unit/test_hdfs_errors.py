"""Tests which messages people see for errors that the HDFS library raised on real clusters."""

from __future__ import annotations

import pytest

from howdah.errors import EngineRejected, EngineUnavailable, HowdahError, StagingError
from howdah.storage.filesystem import ConnectionBroken
from howdah.storage.hdfs.errors import NodeLost, NodeStuck, datanode_failure, explain

URI = "hdfs://nn:8020/data/x"
NODE = 'DatanodeInfoProto {{ id: DatanodeIdProto {{ ip_addr: \\"{}\\", host_name: \\"h\\", xfer_port: {} }} }}'
NO_CREDENTIALS = (
    'GSSAPIError(GssMajorCodes { raw: "0x00070000", calling_error: "none" }, 2529639053, '
    '"No credentials were supplied: No Kerberos credentials available (default cache: FILE:/tmp/none)")'
)
NO_KMS = (
    'OperationFailed("File is in an HDFS encryption zone but no KMS provider is configured (set `x` in core-site.xml)")'
)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            RuntimeError(NO_CREDENTIALS),
            EngineRejected,
            "No Kerberos credentials available (default cache: FILE:/tmp/none)",
        ),
        (RuntimeError(NO_KMS), StagingError, "/data/x: lies in an encryption zone"),
        (
            RuntimeError(f'DataTransferError("All DataNodes failed: [{NODE.format("10.0.0.1", 9866)}]")'),
            ConnectionBroken,
            "/data/x: no copy of a block can be read (DataNodes: 10.0.0.1:9866)",
        ),
        (
            RuntimeError('DataTransferError("All nodes failed for write")'),
            NodeLost,
            "/data/x: a DataNode failed while it was written to: All nodes failed for write",
        ),
        (OSError("RPC listener disconnected"), EngineUnavailable, "does it demand Kerberos"),
        (
            RuntimeError(
                'RPCError("org.apache.hadoop.security.token.SecretManager$InvalidToken", "token can\'t be found")'
            ),
            EngineRejected,
            "does not accept this login: token can't be found",
        ),
    ],
)
def test_an_error_of_hdfs_becomes_one_line(error: Exception, kind: type[HowdahError], words: str) -> None:
    found = explain(error, URI, 1.0, "")
    assert type(found) is kind
    assert words in str(found)
    assert "\n" not in str(found)


def test_who_does_not_say_which_namenodes_there_are() -> None:
    error = OSError("No NameNode hosts found for default")
    said = "hdfs://nn:8020: the configuration in /etc/hadoop does not say which NameNodes these are"
    assert str(explain(error, URI, 0.0, "/etc/hadoop")).startswith(said)
    assert "HADOOP_CONF_DIR is not set, so no configuration says which" in str(explain(error, URI, 0.0, ""))


def test_a_datanode_is_stuck_whichever_limit_ends_first() -> None:
    found = datanode_failure(URI, OSError("No data received for 6000ms"), 6.0)
    assert type(found) is NodeStuck
    assert "/data/x: a DataNode has moved nothing for 6 s (since " in str(found)
    refused = datanode_failure(URI, OSError("Connection refused (os error 111)"), 6.0)
    assert (type(refused), str(refused)) == (
        NodeLost,
        f"{URI}: one of the block's DataNodes can't be reached: Connection refused",
    )
