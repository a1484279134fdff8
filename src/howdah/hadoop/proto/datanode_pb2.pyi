from howdah.hadoop.proto import namenode_pb2 as _namenode_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BlockHeader(_message.Message):
    __slots__ = ("block", "token")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    block: _namenode_pb2.ExtendedBlock
    token: bytes
    def __init__(self, block: _Optional[_Union[_namenode_pb2.ExtendedBlock, _Mapping]] = ..., token: _Optional[bytes] = ...) -> None: ...

class ClientHeader(_message.Message):
    __slots__ = ("base", "client")
    BASE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    base: BlockHeader
    client: str
    def __init__(self, base: _Optional[_Union[BlockHeader, _Mapping]] = ..., client: _Optional[str] = ...) -> None: ...

class ReadBlock(_message.Message):
    __slots__ = ("header", "offset", "length")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    header: ClientHeader
    offset: int
    length: int
    def __init__(self, header: _Optional[_Union[ClientHeader, _Mapping]] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class Checksum(_message.Message):
    __slots__ = ("type", "bytes_per_checksum")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    BYTES_PER_CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    type: int
    bytes_per_checksum: int
    def __init__(self, type: _Optional[int] = ..., bytes_per_checksum: _Optional[int] = ...) -> None: ...

class ReadInfo(_message.Message):
    __slots__ = ("checksum", "chunk_offset")
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    CHUNK_OFFSET_FIELD_NUMBER: _ClassVar[int]
    checksum: Checksum
    chunk_offset: int
    def __init__(self, checksum: _Optional[_Union[Checksum, _Mapping]] = ..., chunk_offset: _Optional[int] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("status", "read", "message")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    status: int
    read: ReadInfo
    message: str
    def __init__(self, status: _Optional[int] = ..., read: _Optional[_Union[ReadInfo, _Mapping]] = ..., message: _Optional[str] = ...) -> None: ...

class Packet(_message.Message):
    __slots__ = ("offset", "number", "last", "length")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    offset: int
    number: int
    last: bool
    length: int
    def __init__(self, offset: _Optional[int] = ..., number: _Optional[int] = ..., last: _Optional[bool] = ..., length: _Optional[int] = ...) -> None: ...

class ReadStatus(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: int
    def __init__(self, status: _Optional[int] = ...) -> None: ...

class Handshake(_message.Message):
    __slots__ = ("status", "payload", "message")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    status: int
    payload: bytes
    message: str
    def __init__(self, status: _Optional[int] = ..., payload: _Optional[bytes] = ..., message: _Optional[str] = ...) -> None: ...

class VisibleLengthRequest(_message.Message):
    __slots__ = ("block",)
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    block: _namenode_pb2.ExtendedBlock
    def __init__(self, block: _Optional[_Union[_namenode_pb2.ExtendedBlock, _Mapping]] = ...) -> None: ...

class VisibleLengthResponse(_message.Message):
    __slots__ = ("length",)
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    length: int
    def __init__(self, length: _Optional[int] = ...) -> None: ...
