# A server of translators: see docs/serving.md. Build it in the clone: docker build -t regard .
FROM python:3.12-slim
WORKDIR /opt/regard
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
COPY docs/lectures ./docs/lectures
# torch first and from its index of CPU builds: the usual one brings gigabytes of GPU libraries.
RUN pip install --no-cache-dir -c constraints.txt torch --index-url https://download.pytorch.org/whl/cpu \
 && pip install --no-cache-dir -c constraints.txt '.[serve,gpt2]'
USER nobody
ENV HOME=/tmp MPLCONFIGDIR=/tmp/matplotlib
EXPOSE 5000
ENTRYPOINT ["regard"]
CMD ["--help"]
