"""Commands as tools of an assistant: `walltime mcp` serves the Model Context Protocol."""
