"""Backups: a cluster's topics, groups and users in a folder, and back.

A backup is made and restored by a client, over the wire. `creating` writes one, `verifying` looks
at every byte of it, `restoring` brings it back; `manifest` says what one is made of and `store`
where it lies.
"""
