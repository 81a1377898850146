"""From fetches and feeds to a compiled step: planning, fusing, emitting, recording."""
