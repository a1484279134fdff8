"""Implements the server's side of SASL DIGEST-MD5 (RFC 2831), for Hadoop servers that tests play."""

from __future__ import annotations

import base64
import hmac
import os
from collections.abc import Callable

from howdah.hadoop.sasl import parse_fields, response_digest, session_key


class DigestServer:
    """Checks one login. `password_of(identifier)` returns the token's password; None for a token that is not valid."""

    def __init__(self, password_of: Callable[[bytes], bytes | None], uri: str = "/default") -> None:
        self.identifier = b""
        self._password_of, self._uri, self._nonce = password_of, uri, base64.b64encode(os.urandom(24)).decode()

    def challenge(self) -> bytes:
        """Return the challenge that the client has to answer."""
        return f'realm="default",nonce="{self._nonce}",qop="auth",charset=utf-8,algorithm=md5-sess'.encode()

    def verify(self, answer: bytes) -> bytes:
        """Return the proof for the client.

        Raises:
            PermissionError: the client does not know the password.
        """
        fields = parse_fields(answer)
        try:
            self.identifier = base64.b64decode(fields["username"], validate=True)
            password = self._password_of(self.identifier)
            secret, cnonce = base64.b64encode(password or b"").decode(), fields["cnonce"]
            session = session_key(fields["username"], fields["realm"], secret, self._nonce, cnonce)
            digest = (session, self._nonce, cnonce, self._uri)
            right = hmac.compare_digest(fields["response"], response_digest(*digest))
        except (KeyError, ValueError):
            password, right = None, False
        if password is None or not right or fields["digest-uri"] != self._uri:
            raise PermissionError("DIGEST-MD5: the token is not valid")
        return f"rspauth={response_digest(*digest, verb='')}".encode()
