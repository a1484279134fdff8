"""Logs in with Kerberos by SASL GSSAPI (RFC 4752), and afterwards uses the strongest security layer of the server.

ctypes calls the system's libgssapi_krb5, because no Python package with Linux wheels does this and every Kerberos
client machine has the library. It uses the ticket cache that `kinit` fills (KRB5CCNAME), and requires mutual
authentication.
"""

from __future__ import annotations

import ctypes as c

from howdah.errors import EngineRejected

_LIBRARY = "libgssapi_krb5.so.2"
_CONTINUE_NEEDED = 1
_FAILED = 0xFFFF0000
_INITIATE = 1
# RFC 2744 3.3: what the context must and may do.
_MUTUAL, _REPLAY, _SEQUENCE, _CONFIDENTIALITY, _INTEGRITY = 2, 4, 8, 16, 32
# RFC 4752 3.3: the layers by their bits, and the longest message in 24 bits.
_NO_LAYER, _PRIVACY = 1, 4
_MAX_MESSAGE = b"\xff\xff\xff"


class _Buffer(c.Structure):
    _fields_ = (("length", c.c_size_t), ("value", c.c_void_p))

    @classmethod
    def from_bytes(cls, data: bytes) -> _Buffer:
        return cls(len(data), c.cast(c.c_char_p(data), c.c_void_p))


class _Oid(c.Structure):
    _fields_ = (("length", c.c_uint32), ("elements", c.c_char_p))


_HOSTBASED = _Oid(10, bytes.fromhex("2a864886f71201020104"))
_KRB5 = _Oid(9, bytes.fromhex("2a864886f712010202"))


def ticket_holder() -> str:
    """Return the principal of the ticket that a login would use; "" without a ticket, or if Kerberos is missing
    here."""
    try:
        library = c.CDLL(_LIBRARY)
    except OSError:
        return ""
    minor, credential, name, text = c.c_uint32(), c.c_void_p(), c.c_void_p(), _Buffer()
    failed = (
        library.gss_acquire_cred(c.byref(minor), None, c.c_uint32(0), None, _INITIATE, c.byref(credential), None, None)
        or library.gss_inquire_cred(c.byref(minor), credential, c.byref(name), None, None, None)
        or library.gss_display_name(c.byref(minor), name, c.byref(text), None)
    )
    found = c.string_at(text.value, text.length).decode(errors="replace") if text.length and not failed else ""
    library.gss_release_buffer(c.byref(minor), c.byref(text))
    library.gss_release_name(c.byref(minor), c.byref(name))
    library.gss_release_cred(c.byref(minor), c.byref(credential))
    return found


class KerberosClient:
    """Does one login to `service@host`. `finished` becomes true when the server has proved its identity; `layered` then
    says whether all later messages must be wrapped."""

    def __init__(self, service: str, host: str) -> None:
        self.finished, self._layer = False, _NO_LAYER
        try:
            self._library = c.CDLL(_LIBRARY)
        except OSError:
            raise EngineRejected(
                f"the cluster wants Kerberos, but {_LIBRARY} is not here: install MIT Kerberos' client library"
            ) from None
        self._minor, self._context, self._name = c.c_uint32(), c.c_void_p(), c.c_void_p()
        self._server, self._established = f"{service}@{host}", False
        name = self._server.encode()
        self._call("gss_import_name", c.byref(_Buffer.from_bytes(name)), c.byref(_HOSTBASED), c.byref(self._name))

    def step(self, challenge: bytes) -> bytes:
        """Return the next message for the server.

        Raises:
            EngineRejected: there is no ticket, or the server is unknown, or offers no known layer.
        """
        if self._established:
            return self._choose_layer(challenge)
        answer = _Buffer()
        flags = _MUTUAL | _REPLAY | _SEQUENCE | _CONFIDENTIALITY | _INTEGRITY
        received = c.byref(_Buffer.from_bytes(challenge)) if challenge else None
        major = self._call(
            "gss_init_sec_context", None, c.byref(self._context), self._name, c.byref(_KRB5), c.c_uint32(flags),
            c.c_uint32(0), None, received, None, c.byref(answer), None, None,
        )  # fmt: skip
        self._established = not major & _CONTINUE_NEEDED
        return self._copy_and_release(answer)

    def _choose_layer(self, challenge: bytes) -> bytes:
        """Choose one of the layers that the server offers, in a message that only the real server can make (RFC 4752
        3.1)."""
        offer = self.unwrap(challenge)[:1] or b"\0"
        layer = next((layer for layer in (_PRIVACY, 2, _NO_LAYER) if offer[0] & layer), 0)
        if not layer:
            raise EngineRejected(f"{self._server} offers no security layer")
        choice = self.wrap(bytes([layer]) + (b"\0\0\0" if layer == _NO_LAYER else _MAX_MESSAGE))
        self._layer, self.finished = layer, True
        return choice

    @property
    def layered(self) -> bool:
        """Return whether messages are signed or encrypted."""
        return self._layer != _NO_LAYER

    def wrap(self, data: bytes) -> bytes:
        """Sign a message, and encrypt it if the layer demands that."""
        wrapped, sealed = _Buffer(), c.c_int(self._layer == _PRIVACY)
        given = c.byref(_Buffer.from_bytes(data))
        self._call("gss_wrap", self._context, sealed, c.c_uint32(0), given, None, c.byref(wrapped))
        return self._copy_and_release(wrapped)

    def unwrap(self, data: bytes) -> bytes:
        """Return the message inside.

        Raises:
            EngineRejected: the server has not made it, or one before it is missing.
        """
        given, plain, sealed = c.byref(_Buffer.from_bytes(data)), _Buffer(), c.c_int()
        self._call("gss_unwrap", self._context, given, c.byref(plain), c.byref(sealed), None)
        found = self._copy_and_release(plain)
        if self._layer == _PRIVACY and not sealed.value:
            raise EngineRejected(f"{self._server} sends in the clear what should be sealed")
        return found

    def _call(self, function: str, *arguments: object) -> int:
        major: int = getattr(self._library, function)(c.byref(self._minor), *arguments) & 0xFFFFFFFF
        if major & _FAILED:
            reasons = "; ".join(self._explain(code, kind) for code, kind in ((major, 1), (self._minor.value, 2)))
            failure = f"Kerberos login to {self._server} failed: {reasons}"
            raise EngineRejected(f"{failure}. Do you have a ticket (klist, kinit)?")
        return major

    def _explain(self, code: int, kind: int) -> str:
        minor, more, text = c.c_uint32(), c.c_uint32(), _Buffer()
        self._library.gss_display_status(
            c.byref(minor), c.c_uint32(code), c.c_int(kind), c.byref(_KRB5), c.byref(more), c.byref(text)
        )
        return self._copy_and_release(text).decode(errors="replace")

    def _copy_and_release(self, buffer: _Buffer) -> bytes:
        data = c.string_at(buffer.value, buffer.length) if buffer.length else b""
        self._library.gss_release_buffer(c.byref(c.c_uint32()), c.byref(buffer))
        return data

    def close(self) -> None:
        """Release the context and the name."""
        if self._context:
            self._library.gss_delete_sec_context(c.byref(self._minor), c.byref(self._context), None)
        if self._name:
            self._library.gss_release_name(c.byref(self._minor), c.byref(self._name))
