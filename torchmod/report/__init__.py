"""What a run tells: text, a diff, JSON, GitHub's annotations; and the closing summary."""
