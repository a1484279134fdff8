from howdah.hadoop.proto import ipc_pb2 as _ipc_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union
from howdah.hadoop.proto.ipc_pb2 import RpcRequestHeader as RpcRequestHeader
from howdah.hadoop.proto.ipc_pb2 import RpcResponseHeader as RpcResponseHeader
from howdah.hadoop.proto.ipc_pb2 import SaslAuth as SaslAuth
from howdah.hadoop.proto.ipc_pb2 import Sasl as Sasl
from howdah.hadoop.proto.ipc_pb2 import UserInformation as UserInformation
from howdah.hadoop.proto.ipc_pb2 import ConnectionContext as ConnectionContext
from howdah.hadoop.proto.ipc_pb2 import RequestHeader as RequestHeader
from howdah.hadoop.proto.ipc_pb2 import Token as Token
from howdah.hadoop.proto.ipc_pb2 import DelegationTokenRequest as DelegationTokenRequest
from howdah.hadoop.proto.ipc_pb2 import DelegationTokenResponse as DelegationTokenResponse

DESCRIPTOR: _descriptor.FileDescriptor

class ApplicationId(_message.Message):
    __slots__ = ("id", "cluster_timestamp")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    id: int
    cluster_timestamp: int
    def __init__(self, id: _Optional[int] = ..., cluster_timestamp: _Optional[int] = ...) -> None: ...

class AttemptId(_message.Message):
    __slots__ = ("application_id", "attempt")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    application_id: ApplicationId
    attempt: int
    def __init__(self, application_id: _Optional[_Union[ApplicationId, _Mapping]] = ..., attempt: _Optional[int] = ...) -> None: ...

class ContainerId(_message.Message):
    __slots__ = ("application_id", "attempt_id", "id")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    application_id: ApplicationId
    attempt_id: AttemptId
    id: int
    def __init__(self, application_id: _Optional[_Union[ApplicationId, _Mapping]] = ..., attempt_id: _Optional[_Union[AttemptId, _Mapping]] = ..., id: _Optional[int] = ...) -> None: ...

class ResourceValue(_message.Message):
    __slots__ = ("key", "value", "units", "type")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: int
    units: str
    type: int
    def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ..., units: _Optional[str] = ..., type: _Optional[int] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("memory", "vcores", "values")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    VCORES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    memory: int
    vcores: int
    values: _containers.RepeatedCompositeFieldContainer[ResourceValue]
    def __init__(self, memory: _Optional[int] = ..., vcores: _Optional[int] = ..., values: _Optional[_Iterable[_Union[ResourceValue, _Mapping]]] = ...) -> None: ...

class ResourceTypeInfo(_message.Message):
    __slots__ = ("name", "units", "type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    units: str
    type: int
    def __init__(self, name: _Optional[str] = ..., units: _Optional[str] = ..., type: _Optional[int] = ...) -> None: ...

class Priority(_message.Message):
    __slots__ = ("priority",)
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    priority: int
    def __init__(self, priority: _Optional[int] = ...) -> None: ...

class NodeId(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class Container(_message.Message):
    __slots__ = ("id", "node", "node_http_address", "resource", "priority", "token", "execution_type", "allocation_request_id", "version", "allocation_tags")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODE_HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_TYPE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_TAGS_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    node: NodeId
    node_http_address: str
    resource: Resource
    priority: Priority
    token: _ipc_pb2.Token
    execution_type: int
    allocation_request_id: int
    version: int
    allocation_tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ..., node: _Optional[_Union[NodeId, _Mapping]] = ..., node_http_address: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., token: _Optional[_Union[_ipc_pb2.Token, _Mapping]] = ..., execution_type: _Optional[int] = ..., allocation_request_id: _Optional[int] = ..., version: _Optional[int] = ..., allocation_tags: _Optional[_Iterable[str]] = ...) -> None: ...

class Url(_message.Message):
    __slots__ = ("scheme", "host", "port", "file", "user_info")
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    USER_INFO_FIELD_NUMBER: _ClassVar[int]
    scheme: str
    host: str
    port: int
    file: str
    user_info: str
    def __init__(self, scheme: _Optional[str] = ..., host: _Optional[str] = ..., port: _Optional[int] = ..., file: _Optional[str] = ..., user_info: _Optional[str] = ...) -> None: ...

class LocalResource(_message.Message):
    __slots__ = ("resource", "size", "timestamp", "type", "visibility")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_FIELD_NUMBER: _ClassVar[int]
    resource: Url
    size: int
    timestamp: int
    type: int
    visibility: int
    def __init__(self, resource: _Optional[_Union[Url, _Mapping]] = ..., size: _Optional[int] = ..., timestamp: _Optional[int] = ..., type: _Optional[int] = ..., visibility: _Optional[int] = ...) -> None: ...

class StringToLocalResource(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: LocalResource
    def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[LocalResource, _Mapping]] = ...) -> None: ...

class StringToString(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class StringToBytes(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: bytes
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class ApplicationAcl(_message.Message):
    __slots__ = ("access", "acl")
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    ACL_FIELD_NUMBER: _ClassVar[int]
    access: int
    acl: str
    def __init__(self, access: _Optional[int] = ..., acl: _Optional[str] = ...) -> None: ...

class LaunchContext(_message.Message):
    __slots__ = ("local_resources", "tokens", "service_data", "environment", "command", "acls")
    LOCAL_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_DATA_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ACLS_FIELD_NUMBER: _ClassVar[int]
    local_resources: _containers.RepeatedCompositeFieldContainer[StringToLocalResource]
    tokens: bytes
    service_data: _containers.RepeatedCompositeFieldContainer[StringToBytes]
    environment: _containers.RepeatedCompositeFieldContainer[StringToString]
    command: _containers.RepeatedScalarFieldContainer[str]
    acls: _containers.RepeatedCompositeFieldContainer[ApplicationAcl]
    def __init__(self, local_resources: _Optional[_Iterable[_Union[StringToLocalResource, _Mapping]]] = ..., tokens: _Optional[bytes] = ..., service_data: _Optional[_Iterable[_Union[StringToBytes, _Mapping]]] = ..., environment: _Optional[_Iterable[_Union[StringToString, _Mapping]]] = ..., command: _Optional[_Iterable[str]] = ..., acls: _Optional[_Iterable[_Union[ApplicationAcl, _Mapping]]] = ...) -> None: ...

class ExecutionTypeRequest(_message.Message):
    __slots__ = ("type", "enforce")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ENFORCE_FIELD_NUMBER: _ClassVar[int]
    type: int
    enforce: bool
    def __init__(self, type: _Optional[int] = ..., enforce: _Optional[bool] = ...) -> None: ...

class ResourceRequest(_message.Message):
    __slots__ = ("priority", "resource_name", "capability", "containers", "relax_locality", "node_label", "execution", "allocation_request_id")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_NAME_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    RELAX_LOCALITY_FIELD_NUMBER: _ClassVar[int]
    NODE_LABEL_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    priority: Priority
    resource_name: str
    capability: Resource
    containers: int
    relax_locality: bool
    node_label: str
    execution: ExecutionTypeRequest
    allocation_request_id: int
    def __init__(self, priority: _Optional[_Union[Priority, _Mapping]] = ..., resource_name: _Optional[str] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ..., containers: _Optional[int] = ..., relax_locality: _Optional[bool] = ..., node_label: _Optional[str] = ..., execution: _Optional[_Union[ExecutionTypeRequest, _Mapping]] = ..., allocation_request_id: _Optional[int] = ...) -> None: ...

class ConstraintTarget(_message.Message):
    __slots__ = ("type", "key", "values")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    type: int
    key: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[int] = ..., key: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class SimpleConstraint(_message.Message):
    __slots__ = ("scope", "targets", "least", "most", "operator")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    LEAST_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    scope: str
    targets: _containers.RepeatedCompositeFieldContainer[ConstraintTarget]
    least: int
    most: int
    operator: int
    def __init__(self, scope: _Optional[str] = ..., targets: _Optional[_Iterable[_Union[ConstraintTarget, _Mapping]]] = ..., least: _Optional[int] = ..., most: _Optional[int] = ..., operator: _Optional[int] = ...) -> None: ...

class CompositeConstraint(_message.Message):
    __slots__ = ("type", "parts")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    type: int
    parts: _containers.RepeatedCompositeFieldContainer[PlacementConstraint]
    def __init__(self, type: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[PlacementConstraint, _Mapping]]] = ...) -> None: ...

class PlacementConstraint(_message.Message):
    __slots__ = ("simple", "composite")
    SIMPLE_FIELD_NUMBER: _ClassVar[int]
    COMPOSITE_FIELD_NUMBER: _ClassVar[int]
    simple: SimpleConstraint
    composite: CompositeConstraint
    def __init__(self, simple: _Optional[_Union[SimpleConstraint, _Mapping]] = ..., composite: _Optional[_Union[CompositeConstraint, _Mapping]] = ...) -> None: ...

class ResourceSizing(_message.Message):
    __slots__ = ("containers", "capability")
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    containers: int
    capability: Resource
    def __init__(self, containers: _Optional[int] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class SchedulingRequest(_message.Message):
    __slots__ = ("allocation_request_id", "priority", "execution", "tags", "sizing", "constraint")
    ALLOCATION_REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SIZING_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    allocation_request_id: int
    priority: Priority
    execution: ExecutionTypeRequest
    tags: _containers.RepeatedScalarFieldContainer[str]
    sizing: ResourceSizing
    constraint: PlacementConstraint
    def __init__(self, allocation_request_id: _Optional[int] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., execution: _Optional[_Union[ExecutionTypeRequest, _Mapping]] = ..., tags: _Optional[_Iterable[str]] = ..., sizing: _Optional[_Union[ResourceSizing, _Mapping]] = ..., constraint: _Optional[_Union[PlacementConstraint, _Mapping]] = ...) -> None: ...

class RejectedSchedulingRequest(_message.Message):
    __slots__ = ("reason", "request")
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    reason: int
    request: SchedulingRequest
    def __init__(self, reason: _Optional[int] = ..., request: _Optional[_Union[SchedulingRequest, _Mapping]] = ...) -> None: ...

class ContainerStatus(_message.Message):
    __slots__ = ("id", "state", "diagnostics", "exit_status", "capability")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    EXIT_STATUS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    state: int
    diagnostics: str
    exit_status: int
    capability: Resource
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ..., state: _Optional[int] = ..., diagnostics: _Optional[str] = ..., exit_status: _Optional[int] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class NodeReport(_message.Message):
    __slots__ = ("node", "http_address", "rack", "used", "capability", "containers", "state", "health_report", "labels", "decommissioning_s")
    NODE_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RACK_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_REPORT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSIONING_S_FIELD_NUMBER: _ClassVar[int]
    node: NodeId
    http_address: str
    rack: str
    used: Resource
    capability: Resource
    containers: int
    state: int
    health_report: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    decommissioning_s: int
    def __init__(self, node: _Optional[_Union[NodeId, _Mapping]] = ..., http_address: _Optional[str] = ..., rack: _Optional[str] = ..., used: _Optional[_Union[Resource, _Mapping]] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ..., containers: _Optional[int] = ..., state: _Optional[int] = ..., health_report: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ..., decommissioning_s: _Optional[int] = ...) -> None: ...

class LogAggregationContext(_message.Message):
    __slots__ = ("include", "exclude", "rolled_include", "rolled_exclude")
    INCLUDE_FIELD_NUMBER: _ClassVar[int]
    EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    ROLLED_INCLUDE_FIELD_NUMBER: _ClassVar[int]
    ROLLED_EXCLUDE_FIELD_NUMBER: _ClassVar[int]
    include: str
    exclude: str
    rolled_include: str
    rolled_exclude: str
    def __init__(self, include: _Optional[str] = ..., exclude: _Optional[str] = ..., rolled_include: _Optional[str] = ..., rolled_exclude: _Optional[str] = ...) -> None: ...

class ApplicationTimeout(_message.Message):
    __slots__ = ("type", "seconds")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    type: int
    seconds: int
    def __init__(self, type: _Optional[int] = ..., seconds: _Optional[int] = ...) -> None: ...

class SubmissionContext(_message.Message):
    __slots__ = ("application_id", "name", "queue", "priority", "master", "cancel_tokens", "unmanaged", "max_attempts", "resource", "type", "keep_containers", "tags", "attempt_failures_validity_ms", "logs", "node_label", "master_requests", "timeouts")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MASTER_FIELD_NUMBER: _ClassVar[int]
    CANCEL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    UNMANAGED_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    KEEP_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FAILURES_VALIDITY_MS_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    NODE_LABEL_FIELD_NUMBER: _ClassVar[int]
    MASTER_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    application_id: ApplicationId
    name: str
    queue: str
    priority: Priority
    master: LaunchContext
    cancel_tokens: bool
    unmanaged: bool
    max_attempts: int
    resource: Resource
    type: str
    keep_containers: bool
    tags: _containers.RepeatedScalarFieldContainer[str]
    attempt_failures_validity_ms: int
    logs: LogAggregationContext
    node_label: str
    master_requests: _containers.RepeatedCompositeFieldContainer[ResourceRequest]
    timeouts: _containers.RepeatedCompositeFieldContainer[ApplicationTimeout]
    def __init__(self, application_id: _Optional[_Union[ApplicationId, _Mapping]] = ..., name: _Optional[str] = ..., queue: _Optional[str] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., master: _Optional[_Union[LaunchContext, _Mapping]] = ..., cancel_tokens: _Optional[bool] = ..., unmanaged: _Optional[bool] = ..., max_attempts: _Optional[int] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., type: _Optional[str] = ..., keep_containers: _Optional[bool] = ..., tags: _Optional[_Iterable[str]] = ..., attempt_failures_validity_ms: _Optional[int] = ..., logs: _Optional[_Union[LogAggregationContext, _Mapping]] = ..., node_label: _Optional[str] = ..., master_requests: _Optional[_Iterable[_Union[ResourceRequest, _Mapping]]] = ..., timeouts: _Optional[_Iterable[_Union[ApplicationTimeout, _Mapping]]] = ...) -> None: ...

class ResourceUsage(_message.Message):
    __slots__ = ("containers", "reserved_containers", "used", "reserved", "needed")
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    containers: int
    reserved_containers: int
    used: Resource
    reserved: Resource
    needed: Resource
    def __init__(self, containers: _Optional[int] = ..., reserved_containers: _Optional[int] = ..., used: _Optional[_Union[Resource, _Mapping]] = ..., reserved: _Optional[_Union[Resource, _Mapping]] = ..., needed: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class ApplicationReport(_message.Message):
    __slots__ = ("id", "user", "queue", "name", "host", "rpc_port", "state", "tracking_url", "diagnostics", "started_ms", "finished_ms", "final_status", "usage", "original_tracking_url", "attempt_id", "progress", "type", "am_rm_token", "tags", "log_aggregation", "priority", "launched_ms", "submitted_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    RPC_PORT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_MS_FIELD_NUMBER: _ClassVar[int]
    FINAL_STATUS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    AM_RM_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    LOG_AGGREGATION_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LAUNCHED_MS_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_MS_FIELD_NUMBER: _ClassVar[int]
    id: ApplicationId
    user: str
    queue: str
    name: str
    host: str
    rpc_port: int
    state: int
    tracking_url: str
    diagnostics: str
    started_ms: int
    finished_ms: int
    final_status: int
    usage: ResourceUsage
    original_tracking_url: str
    attempt_id: AttemptId
    progress: float
    type: str
    am_rm_token: _ipc_pb2.Token
    tags: _containers.RepeatedScalarFieldContainer[str]
    log_aggregation: int
    priority: Priority
    launched_ms: int
    submitted_ms: int
    def __init__(self, id: _Optional[_Union[ApplicationId, _Mapping]] = ..., user: _Optional[str] = ..., queue: _Optional[str] = ..., name: _Optional[str] = ..., host: _Optional[str] = ..., rpc_port: _Optional[int] = ..., state: _Optional[int] = ..., tracking_url: _Optional[str] = ..., diagnostics: _Optional[str] = ..., started_ms: _Optional[int] = ..., finished_ms: _Optional[int] = ..., final_status: _Optional[int] = ..., usage: _Optional[_Union[ResourceUsage, _Mapping]] = ..., original_tracking_url: _Optional[str] = ..., attempt_id: _Optional[_Union[AttemptId, _Mapping]] = ..., progress: _Optional[float] = ..., type: _Optional[str] = ..., am_rm_token: _Optional[_Union[_ipc_pb2.Token, _Mapping]] = ..., tags: _Optional[_Iterable[str]] = ..., log_aggregation: _Optional[int] = ..., priority: _Optional[_Union[Priority, _Mapping]] = ..., launched_ms: _Optional[int] = ..., submitted_ms: _Optional[int] = ...) -> None: ...

class AttemptRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: AttemptId
    def __init__(self, id: _Optional[_Union[AttemptId, _Mapping]] = ...) -> None: ...

class AttemptReport(_message.Message):
    __slots__ = ("diagnostics",)
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    diagnostics: str
    def __init__(self, diagnostics: _Optional[str] = ...) -> None: ...

class AttemptResponse(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: AttemptReport
    def __init__(self, report: _Optional[_Union[AttemptReport, _Mapping]] = ...) -> None: ...

class QueueStatistics(_message.Message):
    __slots__ = ("applications_running", "applications_pending", "available_mib", "allocated_mib", "pending_mib", "reserved_mib", "available_vcores", "allocated_vcores")
    APPLICATIONS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_PENDING_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_MIB_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_MIB_FIELD_NUMBER: _ClassVar[int]
    PENDING_MIB_FIELD_NUMBER: _ClassVar[int]
    RESERVED_MIB_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_VCORES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_VCORES_FIELD_NUMBER: _ClassVar[int]
    applications_running: int
    applications_pending: int
    available_mib: int
    allocated_mib: int
    pending_mib: int
    reserved_mib: int
    available_vcores: int
    allocated_vcores: int
    def __init__(self, applications_running: _Optional[int] = ..., applications_pending: _Optional[int] = ..., available_mib: _Optional[int] = ..., allocated_mib: _Optional[int] = ..., pending_mib: _Optional[int] = ..., reserved_mib: _Optional[int] = ..., available_vcores: _Optional[int] = ..., allocated_vcores: _Optional[int] = ...) -> None: ...

class QueueInfo(_message.Message):
    __slots__ = ("name", "capacity", "maximum_capacity", "current_capacity", "state", "children", "labels", "default_label", "statistics", "path")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CURRENT_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_LABEL_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    name: str
    capacity: float
    maximum_capacity: float
    current_capacity: float
    state: int
    children: _containers.RepeatedCompositeFieldContainer[QueueInfo]
    labels: _containers.RepeatedScalarFieldContainer[str]
    default_label: str
    statistics: QueueStatistics
    path: str
    def __init__(self, name: _Optional[str] = ..., capacity: _Optional[float] = ..., maximum_capacity: _Optional[float] = ..., current_capacity: _Optional[float] = ..., state: _Optional[int] = ..., children: _Optional[_Iterable[_Union[QueueInfo, _Mapping]]] = ..., labels: _Optional[_Iterable[str]] = ..., default_label: _Optional[str] = ..., statistics: _Optional[_Union[QueueStatistics, _Mapping]] = ..., path: _Optional[str] = ...) -> None: ...

class QueueUserAcls(_message.Message):
    __slots__ = ("queue", "acls")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ACLS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    acls: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, queue: _Optional[str] = ..., acls: _Optional[_Iterable[int]] = ...) -> None: ...

class NodeLabel(_message.Message):
    __slots__ = ("name", "exclusive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    exclusive: bool
    def __init__(self, name: _Optional[str] = ..., exclusive: _Optional[bool] = ...) -> None: ...

class NmToken(_message.Message):
    __slots__ = ("node", "token")
    NODE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    node: NodeId
    token: _ipc_pb2.Token
    def __init__(self, node: _Optional[_Union[NodeId, _Mapping]] = ..., token: _Optional[_Union[_ipc_pb2.Token, _Mapping]] = ...) -> None: ...

class PreemptedContainer(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ...) -> None: ...

class StrictContract(_message.Message):
    __slots__ = ("containers",)
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedCompositeFieldContainer[PreemptedContainer]
    def __init__(self, containers: _Optional[_Iterable[_Union[PreemptedContainer, _Mapping]]] = ...) -> None: ...

class Contract(_message.Message):
    __slots__ = ("containers",)
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedCompositeFieldContainer[PreemptedContainer]
    def __init__(self, containers: _Optional[_Iterable[_Union[PreemptedContainer, _Mapping]]] = ...) -> None: ...

class Preemption(_message.Message):
    __slots__ = ("strict", "negotiable")
    STRICT_FIELD_NUMBER: _ClassVar[int]
    NEGOTIABLE_FIELD_NUMBER: _ClassVar[int]
    strict: StrictContract
    negotiable: Contract
    def __init__(self, strict: _Optional[_Union[StrictContract, _Mapping]] = ..., negotiable: _Optional[_Union[Contract, _Mapping]] = ...) -> None: ...

class Blacklist(_message.Message):
    __slots__ = ("add", "remove")
    ADD_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    add: _containers.RepeatedScalarFieldContainer[str]
    remove: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, add: _Optional[_Iterable[str]] = ..., remove: _Optional[_Iterable[str]] = ...) -> None: ...

class SerializedException(_message.Message):
    __slots__ = ("message", "trace", "class_name", "cause")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    message: str
    trace: str
    class_name: str
    cause: SerializedException
    def __init__(self, message: _Optional[str] = ..., trace: _Optional[str] = ..., class_name: _Optional[str] = ..., cause: _Optional[_Union[SerializedException, _Mapping]] = ...) -> None: ...

class ContainerException(_message.Message):
    __slots__ = ("id", "exception")
    ID_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    exception: SerializedException
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ..., exception: _Optional[_Union[SerializedException, _Mapping]] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NewApplication(_message.Message):
    __slots__ = ("id", "maximum")
    ID_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    id: ApplicationId
    maximum: Resource
    def __init__(self, id: _Optional[_Union[ApplicationId, _Mapping]] = ..., maximum: _Optional[_Union[Resource, _Mapping]] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("context",)
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    context: SubmissionContext
    def __init__(self, context: _Optional[_Union[SubmissionContext, _Mapping]] = ...) -> None: ...

class ApplicationRequest(_message.Message):
    __slots__ = ("id", "diagnostics")
    ID_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    id: ApplicationId
    diagnostics: str
    def __init__(self, id: _Optional[_Union[ApplicationId, _Mapping]] = ..., diagnostics: _Optional[str] = ...) -> None: ...

class ApplicationResponse(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: ApplicationReport
    def __init__(self, report: _Optional[_Union[ApplicationReport, _Mapping]] = ...) -> None: ...

class KillResponse(_message.Message):
    __slots__ = ("completed",)
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    completed: bool
    def __init__(self, completed: _Optional[bool] = ...) -> None: ...

class ApplicationsRequest(_message.Message):
    __slots__ = ("types", "states", "users", "queues", "limit", "tags")
    TYPES_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedScalarFieldContainer[str]
    states: _containers.RepeatedScalarFieldContainer[int]
    users: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, types: _Optional[_Iterable[str]] = ..., states: _Optional[_Iterable[int]] = ..., users: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class ApplicationsResponse(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[ApplicationReport]
    def __init__(self, reports: _Optional[_Iterable[_Union[ApplicationReport, _Mapping]]] = ...) -> None: ...

class QueueRequest(_message.Message):
    __slots__ = ("name", "applications", "children", "recursive")
    NAME_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    name: str
    applications: bool
    children: bool
    recursive: bool
    def __init__(self, name: _Optional[str] = ..., applications: _Optional[bool] = ..., children: _Optional[bool] = ..., recursive: _Optional[bool] = ...) -> None: ...

class QueueResponse(_message.Message):
    __slots__ = ("queue",)
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: QueueInfo
    def __init__(self, queue: _Optional[_Union[QueueInfo, _Mapping]] = ...) -> None: ...

class QueueAclsResponse(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueUserAcls]
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueUserAcls, _Mapping]]] = ...) -> None: ...

class NodesRequest(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, states: _Optional[_Iterable[int]] = ...) -> None: ...

class NodesResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeReport]
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeReport, _Mapping]]] = ...) -> None: ...

class NodeLabelsResponse(_message.Message):
    __slots__ = ("labels",)
    LABELS_FIELD_NUMBER: _ClassVar[int]
    labels: _containers.RepeatedCompositeFieldContainer[NodeLabel]
    def __init__(self, labels: _Optional[_Iterable[_Union[NodeLabel, _Mapping]]] = ...) -> None: ...

class ResourceTypesResponse(_message.Message):
    __slots__ = ("types",)
    TYPES_FIELD_NUMBER: _ClassVar[int]
    types: _containers.RepeatedCompositeFieldContainer[ResourceTypeInfo]
    def __init__(self, types: _Optional[_Iterable[_Union[ResourceTypeInfo, _Mapping]]] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("host", "rpc_port", "tracking_url")
    HOST_FIELD_NUMBER: _ClassVar[int]
    RPC_PORT_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    host: str
    rpc_port: int
    tracking_url: str
    def __init__(self, host: _Optional[str] = ..., rpc_port: _Optional[int] = ..., tracking_url: _Optional[str] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("maximum", "previous", "queue", "nm_tokens", "counted", "resource_types")
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_TYPES_FIELD_NUMBER: _ClassVar[int]
    maximum: Resource
    previous: _containers.RepeatedCompositeFieldContainer[Container]
    queue: str
    nm_tokens: _containers.RepeatedCompositeFieldContainer[NmToken]
    counted: _containers.RepeatedScalarFieldContainer[int]
    resource_types: _containers.RepeatedCompositeFieldContainer[ResourceTypeInfo]
    def __init__(self, maximum: _Optional[_Union[Resource, _Mapping]] = ..., previous: _Optional[_Iterable[_Union[Container, _Mapping]]] = ..., queue: _Optional[str] = ..., nm_tokens: _Optional[_Iterable[_Union[NmToken, _Mapping]]] = ..., counted: _Optional[_Iterable[int]] = ..., resource_types: _Optional[_Iterable[_Union[ResourceTypeInfo, _Mapping]]] = ...) -> None: ...

class AllocateRequest(_message.Message):
    __slots__ = ("asks", "releases", "blacklist", "response_id", "progress", "scheduling_requests", "tracking_url")
    ASKS_FIELD_NUMBER: _ClassVar[int]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    BLACKLIST_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULING_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    asks: _containers.RepeatedCompositeFieldContainer[ResourceRequest]
    releases: _containers.RepeatedCompositeFieldContainer[ContainerId]
    blacklist: Blacklist
    response_id: int
    progress: float
    scheduling_requests: _containers.RepeatedCompositeFieldContainer[SchedulingRequest]
    tracking_url: str
    def __init__(self, asks: _Optional[_Iterable[_Union[ResourceRequest, _Mapping]]] = ..., releases: _Optional[_Iterable[_Union[ContainerId, _Mapping]]] = ..., blacklist: _Optional[_Union[Blacklist, _Mapping]] = ..., response_id: _Optional[int] = ..., progress: _Optional[float] = ..., scheduling_requests: _Optional[_Iterable[_Union[SchedulingRequest, _Mapping]]] = ..., tracking_url: _Optional[str] = ...) -> None: ...

class AllocateResponse(_message.Message):
    __slots__ = ("command", "response_id", "allocated", "completed", "headroom", "nodes", "cluster_nodes", "preemption", "nm_tokens", "am_rm_token", "previous", "rejected")
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_NODES_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_FIELD_NUMBER: _ClassVar[int]
    NM_TOKENS_FIELD_NUMBER: _ClassVar[int]
    AM_RM_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    command: int
    response_id: int
    allocated: _containers.RepeatedCompositeFieldContainer[Container]
    completed: _containers.RepeatedCompositeFieldContainer[ContainerStatus]
    headroom: Resource
    nodes: _containers.RepeatedCompositeFieldContainer[NodeReport]
    cluster_nodes: int
    preemption: Preemption
    nm_tokens: _containers.RepeatedCompositeFieldContainer[NmToken]
    am_rm_token: _ipc_pb2.Token
    previous: _containers.RepeatedCompositeFieldContainer[Container]
    rejected: _containers.RepeatedCompositeFieldContainer[RejectedSchedulingRequest]
    def __init__(self, command: _Optional[int] = ..., response_id: _Optional[int] = ..., allocated: _Optional[_Iterable[_Union[Container, _Mapping]]] = ..., completed: _Optional[_Iterable[_Union[ContainerStatus, _Mapping]]] = ..., headroom: _Optional[_Union[Resource, _Mapping]] = ..., nodes: _Optional[_Iterable[_Union[NodeReport, _Mapping]]] = ..., cluster_nodes: _Optional[int] = ..., preemption: _Optional[_Union[Preemption, _Mapping]] = ..., nm_tokens: _Optional[_Iterable[_Union[NmToken, _Mapping]]] = ..., am_rm_token: _Optional[_Union[_ipc_pb2.Token, _Mapping]] = ..., previous: _Optional[_Iterable[_Union[Container, _Mapping]]] = ..., rejected: _Optional[_Iterable[_Union[RejectedSchedulingRequest, _Mapping]]] = ...) -> None: ...

class FinishRequest(_message.Message):
    __slots__ = ("diagnostics", "tracking_url", "final_status")
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    TRACKING_URL_FIELD_NUMBER: _ClassVar[int]
    FINAL_STATUS_FIELD_NUMBER: _ClassVar[int]
    diagnostics: str
    tracking_url: str
    final_status: int
    def __init__(self, diagnostics: _Optional[str] = ..., tracking_url: _Optional[str] = ..., final_status: _Optional[int] = ...) -> None: ...

class FinishResponse(_message.Message):
    __slots__ = ("unregistered",)
    UNREGISTERED_FIELD_NUMBER: _ClassVar[int]
    unregistered: bool
    def __init__(self, unregistered: _Optional[bool] = ...) -> None: ...

class StartContainer(_message.Message):
    __slots__ = ("context", "token")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    context: LaunchContext
    token: _ipc_pb2.Token
    def __init__(self, context: _Optional[_Union[LaunchContext, _Mapping]] = ..., token: _Optional[_Union[_ipc_pb2.Token, _Mapping]] = ...) -> None: ...

class StartRequest(_message.Message):
    __slots__ = ("containers",)
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    containers: _containers.RepeatedCompositeFieldContainer[StartContainer]
    def __init__(self, containers: _Optional[_Iterable[_Union[StartContainer, _Mapping]]] = ...) -> None: ...

class StartResponse(_message.Message):
    __slots__ = ("started", "failed")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    started: _containers.RepeatedCompositeFieldContainer[ContainerId]
    failed: _containers.RepeatedCompositeFieldContainer[ContainerException]
    def __init__(self, started: _Optional[_Iterable[_Union[ContainerId, _Mapping]]] = ..., failed: _Optional[_Iterable[_Union[ContainerException, _Mapping]]] = ...) -> None: ...

class ContainerIds(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedCompositeFieldContainer[ContainerId]
    def __init__(self, ids: _Optional[_Iterable[_Union[ContainerId, _Mapping]]] = ...) -> None: ...

class StopResponse(_message.Message):
    __slots__ = ("stopped", "failed")
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    stopped: _containers.RepeatedCompositeFieldContainer[ContainerId]
    failed: _containers.RepeatedCompositeFieldContainer[ContainerException]
    def __init__(self, stopped: _Optional[_Iterable[_Union[ContainerId, _Mapping]]] = ..., failed: _Optional[_Iterable[_Union[ContainerException, _Mapping]]] = ...) -> None: ...

class StatusesResponse(_message.Message):
    __slots__ = ("statuses", "failed")
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedCompositeFieldContainer[ContainerStatus]
    failed: _containers.RepeatedCompositeFieldContainer[ContainerException]
    def __init__(self, statuses: _Optional[_Iterable[_Union[ContainerStatus, _Mapping]]] = ..., failed: _Optional[_Iterable[_Union[ContainerException, _Mapping]]] = ...) -> None: ...

class SignalRequest(_message.Message):
    __slots__ = ("id", "command")
    ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    command: int
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ..., command: _Optional[int] = ...) -> None: ...

class MasterKey(_message.Message):
    __slots__ = ("id", "key")
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    id: int
    key: bytes
    def __init__(self, id: _Optional[int] = ..., key: _Optional[bytes] = ...) -> None: ...

class NodeHealth(_message.Message):
    __slots__ = ("healthy", "report", "reported_ms")
    HEALTHY_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    REPORTED_MS_FIELD_NUMBER: _ClassVar[int]
    healthy: bool
    report: str
    reported_ms: int
    def __init__(self, healthy: _Optional[bool] = ..., report: _Optional[str] = ..., reported_ms: _Optional[int] = ...) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("node", "response_id", "containers", "health")
    NODE_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    node: NodeId
    response_id: int
    containers: _containers.RepeatedCompositeFieldContainer[ContainerStatus]
    health: NodeHealth
    def __init__(self, node: _Optional[_Union[NodeId, _Mapping]] = ..., response_id: _Optional[int] = ..., containers: _Optional[_Iterable[_Union[ContainerStatus, _Mapping]]] = ..., health: _Optional[_Union[NodeHealth, _Mapping]] = ...) -> None: ...

class RegisterNodeRequest(_message.Message):
    __slots__ = ("node", "http_port", "resource", "version", "status")
    NODE_FIELD_NUMBER: _ClassVar[int]
    HTTP_PORT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    node: NodeId
    http_port: int
    resource: Resource
    version: str
    status: NodeStatus
    def __init__(self, node: _Optional[_Union[NodeId, _Mapping]] = ..., http_port: _Optional[int] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., version: _Optional[str] = ..., status: _Optional[_Union[NodeStatus, _Mapping]] = ...) -> None: ...

class RegisterNodeResponse(_message.Message):
    __slots__ = ("container_key", "nm_key", "action", "rm_id", "diagnostics")
    CONTAINER_KEY_FIELD_NUMBER: _ClassVar[int]
    NM_KEY_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    container_key: MasterKey
    nm_key: MasterKey
    action: int
    rm_id: int
    diagnostics: str
    def __init__(self, container_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nm_key: _Optional[_Union[MasterKey, _Mapping]] = ..., action: _Optional[int] = ..., rm_id: _Optional[int] = ..., diagnostics: _Optional[str] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("status", "container_key", "nm_key")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_KEY_FIELD_NUMBER: _ClassVar[int]
    NM_KEY_FIELD_NUMBER: _ClassVar[int]
    status: NodeStatus
    container_key: MasterKey
    nm_key: MasterKey
    def __init__(self, status: _Optional[_Union[NodeStatus, _Mapping]] = ..., container_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nm_key: _Optional[_Union[MasterKey, _Mapping]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("response_id", "container_key", "nm_key", "action", "cleanup", "diagnostics", "remove")
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_KEY_FIELD_NUMBER: _ClassVar[int]
    NM_KEY_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CLEANUP_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_FIELD_NUMBER: _ClassVar[int]
    REMOVE_FIELD_NUMBER: _ClassVar[int]
    response_id: int
    container_key: MasterKey
    nm_key: MasterKey
    action: int
    cleanup: _containers.RepeatedCompositeFieldContainer[ContainerId]
    diagnostics: str
    remove: _containers.RepeatedCompositeFieldContainer[ContainerId]
    def __init__(self, response_id: _Optional[int] = ..., container_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nm_key: _Optional[_Union[MasterKey, _Mapping]] = ..., action: _Optional[int] = ..., cleanup: _Optional[_Iterable[_Union[ContainerId, _Mapping]]] = ..., diagnostics: _Optional[str] = ..., remove: _Optional[_Iterable[_Union[ContainerId, _Mapping]]] = ...) -> None: ...

class NmTokenIdentifier(_message.Message):
    __slots__ = ("attempt_id", "node", "user", "key_id")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    attempt_id: AttemptId
    node: NodeId
    user: str
    key_id: int
    def __init__(self, attempt_id: _Optional[_Union[AttemptId, _Mapping]] = ..., node: _Optional[_Union[NodeId, _Mapping]] = ..., user: _Optional[str] = ..., key_id: _Optional[int] = ...) -> None: ...

class AmRmTokenIdentifier(_message.Message):
    __slots__ = ("attempt_id", "key_id")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    attempt_id: AttemptId
    key_id: int
    def __init__(self, attempt_id: _Optional[_Union[AttemptId, _Mapping]] = ..., key_id: _Optional[int] = ...) -> None: ...

class ContainerTokenIdentifier(_message.Message):
    __slots__ = ("id", "node_address", "user", "resource", "expires_ms", "key_id", "rm_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    id: ContainerId
    node_address: str
    user: str
    resource: Resource
    expires_ms: int
    key_id: int
    rm_id: int
    def __init__(self, id: _Optional[_Union[ContainerId, _Mapping]] = ..., node_address: _Optional[str] = ..., user: _Optional[str] = ..., resource: _Optional[_Union[Resource, _Mapping]] = ..., expires_ms: _Optional[int] = ..., key_id: _Optional[int] = ..., rm_id: _Optional[int] = ...) -> None: ...
