from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DatanodeId(_message.Message):
    __slots__ = ("ip_address", "host_name", "transfer_port", "ipc_port")
    IP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_PORT_FIELD_NUMBER: _ClassVar[int]
    IPC_PORT_FIELD_NUMBER: _ClassVar[int]
    ip_address: str
    host_name: str
    transfer_port: int
    ipc_port: int
    def __init__(self, ip_address: _Optional[str] = ..., host_name: _Optional[str] = ..., transfer_port: _Optional[int] = ..., ipc_port: _Optional[int] = ...) -> None: ...

class DatanodeInfo(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: DatanodeId
    def __init__(self, id: _Optional[_Union[DatanodeId, _Mapping]] = ...) -> None: ...

class ExtendedBlock(_message.Message):
    __slots__ = ("pool", "block_id", "generation", "length")
    POOL_FIELD_NUMBER: _ClassVar[int]
    BLOCK_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    pool: str
    block_id: int
    generation: int
    length: int
    def __init__(self, pool: _Optional[str] = ..., block_id: _Optional[int] = ..., generation: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class LocatedBlock(_message.Message):
    __slots__ = ("block", "offset", "locations", "corrupt", "token")
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    CORRUPT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    block: ExtendedBlock
    offset: int
    locations: _containers.RepeatedCompositeFieldContainer[DatanodeInfo]
    corrupt: bool
    token: bytes
    def __init__(self, block: _Optional[_Union[ExtendedBlock, _Mapping]] = ..., offset: _Optional[int] = ..., locations: _Optional[_Iterable[_Union[DatanodeInfo, _Mapping]]] = ..., corrupt: _Optional[bool] = ..., token: _Optional[bytes] = ...) -> None: ...

class LocatedBlocks(_message.Message):
    __slots__ = ("file_length", "blocks", "under_construction", "last_block", "last_is_complete", "encryption", "erasure_coding")
    FILE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    UNDER_CONSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    LAST_BLOCK_FIELD_NUMBER: _ClassVar[int]
    LAST_IS_COMPLETE_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_FIELD_NUMBER: _ClassVar[int]
    ERASURE_CODING_FIELD_NUMBER: _ClassVar[int]
    file_length: int
    blocks: _containers.RepeatedCompositeFieldContainer[LocatedBlock]
    under_construction: bool
    last_block: LocatedBlock
    last_is_complete: bool
    encryption: bytes
    erasure_coding: bytes
    def __init__(self, file_length: _Optional[int] = ..., blocks: _Optional[_Iterable[_Union[LocatedBlock, _Mapping]]] = ..., under_construction: _Optional[bool] = ..., last_block: _Optional[_Union[LocatedBlock, _Mapping]] = ..., last_is_complete: _Optional[bool] = ..., encryption: _Optional[bytes] = ..., erasure_coding: _Optional[bytes] = ...) -> None: ...

class Permission(_message.Message):
    __slots__ = ("bits",)
    BITS_FIELD_NUMBER: _ClassVar[int]
    bits: int
    def __init__(self, bits: _Optional[int] = ...) -> None: ...

class FileStatus(_message.Message):
    __slots__ = ("file_type", "path", "length", "permission", "owner", "group", "modified_ms", "accessed_ms", "block_size", "locations")
    FILE_TYPE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_MS_FIELD_NUMBER: _ClassVar[int]
    ACCESSED_MS_FIELD_NUMBER: _ClassVar[int]
    BLOCK_SIZE_FIELD_NUMBER: _ClassVar[int]
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    file_type: int
    path: bytes
    length: int
    permission: Permission
    owner: str
    group: str
    modified_ms: int
    accessed_ms: int
    block_size: int
    locations: LocatedBlocks
    def __init__(self, file_type: _Optional[int] = ..., path: _Optional[bytes] = ..., length: _Optional[int] = ..., permission: _Optional[_Union[Permission, _Mapping]] = ..., owner: _Optional[str] = ..., group: _Optional[str] = ..., modified_ms: _Optional[int] = ..., accessed_ms: _Optional[int] = ..., block_size: _Optional[int] = ..., locations: _Optional[_Union[LocatedBlocks, _Mapping]] = ...) -> None: ...

class DirectoryListing(_message.Message):
    __slots__ = ("partial_listing", "remaining_entries")
    PARTIAL_LISTING_FIELD_NUMBER: _ClassVar[int]
    REMAINING_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    partial_listing: _containers.RepeatedCompositeFieldContainer[FileStatus]
    remaining_entries: int
    def __init__(self, partial_listing: _Optional[_Iterable[_Union[FileStatus, _Mapping]]] = ..., remaining_entries: _Optional[int] = ...) -> None: ...

class GetListingRequest(_message.Message):
    __slots__ = ("source", "start_after", "need_location")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    START_AFTER_FIELD_NUMBER: _ClassVar[int]
    NEED_LOCATION_FIELD_NUMBER: _ClassVar[int]
    source: str
    start_after: bytes
    need_location: bool
    def __init__(self, source: _Optional[str] = ..., start_after: _Optional[bytes] = ..., need_location: _Optional[bool] = ...) -> None: ...

class GetListingResponse(_message.Message):
    __slots__ = ("listing",)
    LISTING_FIELD_NUMBER: _ClassVar[int]
    listing: DirectoryListing
    def __init__(self, listing: _Optional[_Union[DirectoryListing, _Mapping]] = ...) -> None: ...

class GetBlockLocationsRequest(_message.Message):
    __slots__ = ("source", "offset", "length")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    source: str
    offset: int
    length: int
    def __init__(self, source: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class GetBlockLocationsResponse(_message.Message):
    __slots__ = ("locations",)
    LOCATIONS_FIELD_NUMBER: _ClassVar[int]
    locations: LocatedBlocks
    def __init__(self, locations: _Optional[_Union[LocatedBlocks, _Mapping]] = ...) -> None: ...
