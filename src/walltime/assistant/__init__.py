"""Commands as tools of an AI assistant: `walltime mcp` implements the Model Context Protocol."""
