FROM python:3.12-slim
COPY requirements.lock /opt/wedgewatch/
RUN pip install --no-cache-dir -r /opt/wedgewatch/requirements.lock
COPY . /opt/wedgewatch
RUN pip install --no-cache-dir --no-deps /opt/wedgewatch \
    && useradd --uid 10001 --no-create-home wedgewatch \
    && install --directory --owner=wedgewatch --group=wedgewatch /var/lib/wedgewatch
USER wedgewatch
CMD ["wedgewatch", "--help"]
