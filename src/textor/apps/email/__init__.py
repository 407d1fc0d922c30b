"""An email program: recipients, subject, body, attachments, drafts, and sending by SMTP."""
